// The search box: "/" focuses it, arrows choose, Enter opens.
import { h, address, key, plural } from './dom.js';
import { ask } from './api.js';

const box = document.getElementById('search');
const list = document.getElementById('results');
const frame = document.getElementById('results-box');
const more = document.getElementById('results-more');
const shown = 12;

let items = [];
let chosen = -1;
let running;

function close() {
  frame.hidden = true;
  box.setAttribute('aria-expanded', 'false');
  box.removeAttribute('aria-activedescendant');
  chosen = -1;
}

function choose(i) {
  chosen = i;
  [...list.children].forEach((row, n) => row.setAttribute('aria-selected', String(n === i)));
  if (i < 0) box.removeAttribute('aria-activedescendant');
  else {
    box.setAttribute('aria-activedescendant', `result-${i}`);
    list.children[i].scrollIntoView({ block: 'nearest' });
  }
}

function open(target) {
  running?.abort();
  close();
  box.value = '';
  document.dispatchEvent(new CustomEvent('overrule:go', { detail: target }));
}

/** about returns what a result is about, besides its name. */
export function about(item) {
  if (item.match) return item.match;
  if (item.hostnames?.length) return item.hostnames.join(', ');
  return item.targets?.length ? `at ${item.targets.map((t) => `${t.kind} ${key(t)}`).join(', ')}` : '';
}

function row(item, i) {
  return h('li', { id: `result-${i}`, role: 'option', 'aria-selected': 'false', onmousedown: (event) => { event.preventDefault(); open(address(item.ref)); } },
    h('span', { class: 'kind' }, item.ref.kind), h('span', { class: 'what' }, key(item.ref)), h('span', { class: 'about' }, about(item)));
}

async function search() {
  const query = box.value.trim();
  running?.abort();
  if (!query) return close();
  running = new AbortController();
  const began = performance.now();
  let answer;
  try {
    answer = await ask('/api/search', { query: { q: query, limit: shown }, signal: running.signal });
  } catch (error) {
    if (error.name === 'AbortError') return undefined;
    answer = { items: [], total: 0, error: error.message };
  }
  const kept = chosen >= 0 ? address(items[chosen].ref) : ''; // chosen while the search was running
  items = answer.items;
  list.replaceChildren(...items.map(row));
  more.textContent = answer.error ?? (answer.total === 0 ? 'Nothing found' : answer.total > items.length
    ? `${plural(answer.total, 'result')}; Enter shows more` : plural(answer.total, 'result'));
  frame.hidden = false;
  box.setAttribute('aria-expanded', 'true');
  choose(items.findIndex((item) => address(item.ref) === kept));
  document.getElementById('announce').textContent = more.textContent;
  performance.measure('overrule-search', { start: began });
  return undefined;
}

function onKey(event) {
  if (event.key === 'Escape') return frame.hidden ? box.blur() : close();
  if (event.key === 'Enter') {
    event.preventDefault();
    if (chosen >= 0) return open(address(items[chosen].ref));
    if (box.value.trim()) return open(`/search?q=${encodeURIComponent(box.value.trim())}`);
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && !frame.hidden && items.length) {
    event.preventDefault();
    choose(chosen < 0 && step < 0 ? items.length - 1 : (chosen + step + items.length) % items.length);
  }
  return undefined;
}

export function startSearch() {
  box.addEventListener('input', search);
  box.addEventListener('focus', () => { if (box.value.trim()) search(); });
  box.addEventListener('blur', close);
  box.addEventListener('keydown', onKey);
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.('input, textarea, select')) return;
    event.preventDefault();
    box.focus();
    box.select();
  });
}
