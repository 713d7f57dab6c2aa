// Paths from a gateway to a rule of a route.
import { h, link } from './dom.js';

const isSection = (kind) => kind === 'Listener' || kind.endsWith('Rule');

/** pathLine returns a path as links; a listener or rule is part of its object. */
export function pathLine(path) {
  const out = [];
  for (const e of path) {
    if (isSection(e.kind)) {
      out.push(h('span', { class: 'section' }, ` ${e.kind === 'Listener' ? 'listener' : 'rule'} `, h('b', {}, e.section || `${(e.index ?? 0) + 1}`), e.member && ` ${e.member}`));
      continue;
    }
    if (out.length) out.push(h('span', { class: 'then', 'aria-hidden': 'true' }, ' › '));
    out.push(h('span', { class: 'kind' }, e.kind), ' ', link(e));
    if (e.section) out.push(h('span', { class: 'section' }, ` port ${e.section}`));
    if (e.client) out.push(h('span', { class: 'section' }, ` from namespace ${e.client}`));
  }
  return h('span', { class: 'path' }, out);
}

/** pathList returns paths as a list, of which the first ones are open. */
export function pathList(paths, name) {
  const shown = 5;
  const items = (all) => h('ul', { class: 'paths' }, all.map((p) => h('li', {}, pathLine(p))));
  if (paths.length <= shown) return items(paths);
  return [items(paths.slice(0, shown)), h('details', { 'data-key': `paths-${name}` }, h('summary', {}, `${paths.length - shown} more paths`), items(paths.slice(shown)))];
}
