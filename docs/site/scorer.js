/* Ranks the results of a search; Sphinx gives equal scores to most pages.

A title with more words of the query comes first, then guides, then the
reference, then what developers read. A query of five words or more is an
error message: Troubleshooting explains it. */
{
  const places = [
    [/^docs\/troubleshooting$/, 3],
    [/^docs\/howto/, 3],
    [/^docs\/api\//, 0],
    [/^docs\/(architecture|testing|cuda|new_\w+|passes\/.*)$/, -4],
    [/^docs\//, 2],
    [/^(CHANGELOG|CONTRIBUTING)$/, -5],
    [/^benchmark\//, -6],
  ];
  const query = new URLSearchParams(window.location.search).get('q') ?? '';
  const words = query.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) ?? [];

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
      const found = words.filter((word) => name.includes(word.slice(0, 6)));
      score += 4 * found.length;
      score += places.find(([pattern]) => pattern.test(page))?.[1] ?? 0;
      return page === 'docs/troubleshooting' && words.length >= 5
        ? score + 40
        : score;
    },
  };
}
