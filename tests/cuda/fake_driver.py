"""Stands in for the driver that registers memory."""


class FakeDriver:
    """Registers memory, or refuses to."""

    def __init__(self, refuses=False):
        self.refuses, self.registered = refuses, {}

    def gsample_register_host(self, address, size):
        if self.refuses:
            return 1
        assert address not in self.registered
        self.registered[address] = size
        return 0

    def gsample_unregister_host(self, address):
        del self.registered[address]
