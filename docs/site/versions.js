// Fills the menu of versions from `versions.json` in the folder above that of
// this version (docs/versions.py). The menu is hidden where there is no list,
// as in a site of one version or in files on a disk.

async function addVersions(menu) {
  const root = new URL(menu.dataset.root, location.href);
  const answer = await fetch(new URL('../versions.json', root));
  if (!answer.ok) return;
  const versions = await answer.json();
  const own = menu.dataset.version;
  const select = menu.querySelector('select');
  for (const { version } of versions) {
    const option = document.createElement('option');
    option.value = option.textContent = version;
    option.selected = version === own;
    select.append(option);
  }
  const latest = versions.find((entry) => entry.preferred).version;
  if (latest !== own) {
    const note = menu.querySelector('p');
    note.textContent = `The latest version is ${latest}.`;
    note.hidden = false;
  }
  select.addEventListener('change', async () => {
    location.href = await pageOf(new URL(`../${select.value}/`, root), root);
  });
  menu.hidden = false;
}

// Returns this page in another version, or its first page if it has none.
async function pageOf(other, root) {
  const page = new URL(location.href.slice(root.href.length), other);
  const found = await fetch(page, { method: 'HEAD' });
  return (found.ok ? page : other).href;
}

document.addEventListener('DOMContentLoaded', () => {
  const menu = document.querySelector('.versions');
  if (menu) addVersions(menu).catch(() => {});
});
