/* Searches for most words of a query, and ranks the pages.

Sphinx finds only pages with all words, and gives most of them equal scores. A
question has words that its answer has not, and an error message has values.
Here a word counts -log(share of pages that have it), more in a heading; words
on no page count nothing. Then guides come before the reference and what
developers read, and Troubleshooting before all for an error message. */
{
  const places = [
    [/^docs\/troubleshooting$/, 3],
    [/^docs\/howto/, 3],
    [/^docs\/api\//, 0],
    [/^docs\/(architecture|testing|cuda|new_\w+|passes\/.*)$/, -10],
    [/^docs\//, 2],
    [/^(CHANGELOG|CONTRIBUTING)$/, -15],
    [/^benchmark\//, -30],
  ];
  const query = new URLSearchParams(window.location.search).get('q') ?? '';
  const words = query.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) ?? [];
  const message =
    /['"`:()[\]]/.test(query) || (words.length >= 5 && !query.endsWith('?'));

  // Sphinx reads a variable of this name.
  var Scorer = {
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,

    score: ([page, title, , , score]) => {
      const name = title.toLowerCase();
      // Six letters stand for all forms of a word.
      const found = words.filter(
        (word) => !stopwords.has(word) && name.includes(word.slice(0, 6)),
      );
      score += 4 * found.length;
      score += places.find(([pattern]) => pattern.test(page))?.[1] ?? 0;
      return page === 'docs/troubleshooting' && message ? score + 40 : score;
    },
  };

  const search = Search.performTermsSearch;
  Search.performTermsSearch = (terms, excluded) => {
    const pages = new Map();
    let total = 0;
    for (const term of terms) {
      const results = search(new Set([term]), excluded);
      if (!results.length) continue;
      const share = results.length / (Search._index.docnames.length + 1);
      const weight = -Math.log(share);
      total += weight;
      for (const result of results) {
        const page = pages.get(result[0]) ?? { result, weight: 0, score: 0 };
        page.weight += weight;
        page.score += weight * result[4];
        pages.set(result[0], page);
      }
    }
    // Values may be words, as the name of an attribute is.
    const least = total / (message ? 4 : 2);
    return [...pages.values()]
      .filter((page) => page.weight >= least)
      .map(({ result, score }) => {
        result[4] = Math.round((2 * score) / total);
        return result;
      });
  };
}
