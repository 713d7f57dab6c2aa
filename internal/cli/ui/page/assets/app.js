// Shows the view that the address names, and keeps it up to date.
import { h, nodes } from './dom.js';
import { follow } from './events.js';
import { startSearch } from './search.js';
import { overview, searchView } from './overview.js';
import { objectView } from './object.js';
import { requestView } from './request.js';
import { changeView } from './change.js';
import { violationsView } from './violations.js';

const main = document.getElementById('main');
const views = { '/': overview, '/search': searchView, '/request': requestView, '/change': changeView, '/violations': violationsView };

let current; // the view, with what it showed
let running; // ends what is being loaded
let version;

function viewOf(url) {
  const parts = url.pathname.split('/').slice(1);
  if (parts[0] !== 'o') return views[url.pathname] ?? notFound;
  if (parts.length !== 3 && parts.length !== 4) return notFound;
  let names;
  try {
    names = parts.slice(1).map(decodeURIComponent);
  } catch {
    return notFound;
  }
  const [kind, namespace, name] = names.length === 3 ? names : [names[0], '', names[1]];
  return objectView({ kind, namespace, name });
}

async function notFound({ url }) {
  return {
    title: 'Not found',
    content: [h('h1', {}, 'There is no such page'),
      h('p', {}, 'The address ', h('code', {}, url.pathname), ' names no view. Search for an object above, or go to the ', h('a', { href: '/' }, 'overview'), '.')],
  };
}

/** show loads the view of the address. With move, the focus goes to its heading. */
async function show({ move }) {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const url = new URL(location.href);
  mark(url);
  main.setAttribute('aria-busy', 'true');
  let view;
  try {
    view = await viewOf(url)({ url, signal });
  } catch (error) {
    if (error.name === 'AbortError') return;
    view = failed(error);
  }
  if (signal.aborted) return;
  main.removeAttribute('aria-busy');
  if (!move && view.data !== undefined && view.data === current?.data) return;
  render(view, move);
}

function failed(error) {
  const title = error.status === 404 ? 'Not found' : 'This cannot be shown';
  return {
    title,
    content: [h('h1', {}, title), h('p', { class: 'problem' }, error.message),
      h('p', {}, 'Search for another object above, or go to the ', h('a', { href: '/' }, 'overview'), '.')],
  };
}

function render(view, move) {
  const focused = !move && main.contains(document.activeElement) ? document.activeElement : null;
  const again = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.getAttribute('href') && `a[href="${CSS.escape(focused.getAttribute('href'))}"]`);
  const open = new Map([...main.querySelectorAll('details[data-key]')].map((d) => [d.dataset.key, d.open]));
  current = view;
  document.title = `${view.title} · Overrule`;
  main.replaceChildren(...nodes([view.content]));
  for (const d of main.querySelectorAll('details[data-key]')) if (!move && open.has(d.dataset.key)) d.open = open.get(d.dataset.key);
  if (!move) {
    if (again) main.querySelector(again)?.focus({ preventScroll: true });
    announce('The page has new data.');
    return;
  }
  const heading = main.querySelector('h1');
  if (move === 'focus' && heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
  scrollTo(0, 0);
  performance.mark('overrule-shown');
}

function mark(url) {
  for (const a of document.querySelectorAll('.views a')) {
    if (a.getAttribute('href') === url.pathname) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
}

export function announce(text) { document.getElementById('announce').textContent = text; }

/** go shows an address of the page. */
function go(address) {
  history.pushState(null, '', address);
  show({ move: 'focus' });
}

document.addEventListener('click', (event) => {
  const a = event.composedPath().find((e) => e.localName === 'a' && e.hasAttribute('href')); // also in a shadow root
  if (!a || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const target = a.getAttribute('href') ?? '';
  if (!target.startsWith('/') || target.startsWith('/api/') || a.target) return;
  event.preventDefault();
  go(target);
});
document.addEventListener('overrule:go', (event) => go(event.detail));
addEventListener('popstate', () => show({ move: 'focus' }));

const time = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

function banner(status, lost) {
  const box = document.getElementById('banner');
  let parts = [];
  if (lost) {
    parts = [h('strong', {}, 'Not connected. '), 'kubectl overrule ui does not answer; the page shows what it had last. Is it still running in the terminal?'];
  } else if (status?.error) {
    parts = [h('strong', {}, `Not up to date since ${time.format(new Date(status.since))}. `), 'The page shows the last state that could be read. ', h('pre', {}, status.error)];
  }
  if (box.textContent !== parts.map((p) => p.textContent ?? p).join('')) box.replaceChildren(...parts);
  box.hidden = parts.length === 0;
  document.getElementById('status').textContent = `${status?.source ?? ''} · ${lost || status?.error ? 'not up to date' : 'live'}`;
}

follow((status, lost) => {
  banner(status, lost);
  if (!status || lost || status.version === version) return;
  const isFirst = version === undefined;
  version = status.version;
  document.documentElement.dataset.version = version;
  if (isFirst) return;
  if (current?.onVersion) current.onVersion();
  else show({ move: false });
});
startSearch();
show({ move: 'first' });
