// The overview, and the list of results of a search.
import { h, link, plural } from './dom.js';
import { ask } from './api.js';
import { about } from './search.js';

const asSearch = (kind) => `/search?q=${encodeURIComponent(kind)}`;

function resultTable(answer, caption) {
  if (answer.total === 0) return h('p', {}, 'Nothing found. Words can be parts of a kind, a namespace, a name, a hostname or a rule.');
  return [
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
      h('table', {}, h('caption', { class: 'hidden' }, caption),
        h('thead', {}, h('tr', {}, ['Kind', 'Object', 'About'].map((t) => h('th', { scope: 'col' }, t)))),
        h('tbody', {}, answer.items.map((item) => h('tr', {}, h('td', { class: 'kind' }, item.ref.kind), h('td', {}, link(item.ref)), h('td', { class: 'about' }, about(item))))))),
    answer.total > answer.items.length && h('p', { class: 'note' }, `The first ${answer.items.length} of ${plural(answer.total, 'object')}. Search for more words to see others.`),
  ];
}

export async function overview({ signal }) {
  const [state, routes] = await Promise.all([ask('/api/state', { signal }), ask('/api/search', { query: { kind: 'Route', limit: 50 }, signal })]);
  const tile = (k) => h('li', {}, h('a', { class: 'tile', href: asSearch(k.kind.kind) }, h('strong', {}, k.objects.toLocaleString('en')), ' ', h('span', {}, k.kind.kind)));
  const policies = state.kinds.filter((k) => k.policy);
  const others = state.kinds.filter((k) => !k.policy);
  return {
    title: 'Overview',
    data: JSON.stringify([state.kinds, state.warnings, routes]),
    content: [
      h('h1', {}, 'What holds, and why'),
      h('p', { class: 'lead' }, 'Open a route, a gateway or a policy to see which rules are in effect there, which are not, and whom to ask. Press ', h('kbd', {}, '/'), ' to search.'),
      state.warnings?.length > 0 && h('section', { class: 'card warn', 'aria-labelledby': 'unread' }, h('h2', { id: 'unread' }, 'Not everything could be read'),
        h('ul', {}, state.warnings.map((w) => h('li', {}, w)))),
      h('section', { 'aria-labelledby': 'policies' }, h('h2', { id: 'policies' }, 'Policies'),
        policies.length ? h('ul', { class: 'tiles' }, policies.map(tile)) : h('p', {}, 'There are no policies.')),
      h('section', { 'aria-labelledby': 'objects' }, h('h2', { id: 'objects' }, 'Objects'), h('ul', { class: 'tiles' }, others.map(tile))),
      h('section', { 'aria-labelledby': 'routes' }, h('h2', { id: 'routes' }, 'Routes'), resultTable(routes, 'List of routes')),
    ],
  };
}

export async function searchView({ url, signal }) {
  const q = url.searchParams.get('q') ?? '';
  const answer = await ask('/api/search', { query: { q, limit: 200 }, signal });
  return {
    title: `Search: ${q}`,
    data: JSON.stringify(answer),
    content: [h('h1', {}, 'Search: ', h('q', {}, q)), h('p', {}, plural(answer.total, 'object')), resultTable(answer, 'Results')],
  };
}

