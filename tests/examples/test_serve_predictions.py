"""The server of predictions answers real clients over HTTP."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import torch
import uvicorn

from tests.examples.test_examples import load
from tests.samplers import graphs

SERVE = load('serve_predictions')
DATA = graphs.homogeneous(num_nodes=200, num_edges=2000)
DATA.x = torch.rand(200, 8, generator=torch.Generator().manual_seed(0))


def make_predictor():
    torch.manual_seed(0)
    return SERVE.Predictor(SERVE.SAGE(8, 16, 5), DATA)


@contextlib.contextmanager
def serving(predict, max_nodes=64, wait=0.05):
    """Runs the application on a free port; yields a client and the app."""
    app = SERVE.make_app(predict, max_nodes, wait)
    config = uvicorn.Config(app, port=0, log_level='warning')
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        [listening] = server.servers[0].sockets
        port = listening.getsockname()[1]
        with httpx.Client(
            base_url=f'http://127.0.0.1:{port}', timeout=30, trust_env=False
        ) as client:
            yield client, app
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def test_answers_do_not_depend_on_who_asks_at_the_same_time():
    predict = make_predictor()
    asked = [torch.randint(200, (1 + i % 5,)).tolist() for i in range(80)]
    expected = [predict(torch.tensor(nodes)).tolist() for nodes in asked]
    with serving(predict) as (client, app):

        def ask(nodes):
            out = client.post('/predict', json={'nodes': nodes})
            return out.raise_for_status().json()['classes']

        with ThreadPoolExecutor(8) as clients:
            assert list(clients.map(ask, asked)) == expected
        assert 0 < app.state.batcher.calls < 60  # some were asked together


@pytest.mark.parametrize(
    'body',
    [
        {'nodes': []},
        {'nodes': [200]},
        {'nodes': [-1]},
        {'nodes': [0] * 65},
        {'nodes': ['a']},
        {},
    ],
)
def test_a_wrong_request_is_refused_alone(body):
    with serving(make_predictor(), wait=0.0) as (client, _):
        assert client.post('/predict', json=body).status_code == 422
        assert client.post('/predict', json={'nodes': [3]}).status_code == 200


def test_a_failure_is_told_and_later_requests_are_answered():
    predict = make_predictor()
    fails = threading.Event()

    def failing(nodes):
        if fails.is_set():
            raise RuntimeError('no memory')
        return predict(nodes)

    failing.num_nodes = 200
    with serving(failing, wait=0.0) as (client, _):
        fails.set()
        assert client.post('/predict', json={'nodes': [3]}).status_code == 500
        fails.clear()
        assert client.post('/predict', json={'nodes': [3]}).status_code == 200


def test_a_server_ends_while_clients_wait():
    """A slow model is asked, and the server told to end."""
    predict = make_predictor()

    def slow(nodes):
        time.sleep(0.2)
        return predict(nodes)

    slow.num_nodes = 200
    with ThreadPoolExecutor(4) as clients:
        with serving(slow, wait=0.0) as (client, _):
            begun = [
                clients.submit(client.post, '/predict', json={'nodes': [i]})
                for i in range(4)
            ]
            time.sleep(0.1)
            ended = time.monotonic()
        assert time.monotonic() - ended < 10
        for answer in begun:
            # A request may not have begun when its client was closed.
            with contextlib.suppress(httpx.TransportError, RuntimeError):
                assert answer.result(30).status_code in (200, 500, 503)


def test_threads_share_a_sampler():
    """Eight threads at a time draw what one after another does."""
    sampler = make_predictor().sampler
    seeds = [torch.randint(200, (1 + i % 7,)) for i in range(400)]
    expected = [sampler.tensors(part).edge for part in seeds]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda s: sampler.tensors(s).edge, seeds))
    assert all(map(torch.equal, found, expected))
    assert sampler.stats()['batches'] == 800
