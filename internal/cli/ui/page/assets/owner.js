// The owners of a policy: whom to ask about it.
import { h, link } from './dom.js';

/** names matches the labels of a namespace that name people. */
const names = /owner|team|contact|maintainer/i;

/** owner says whom to ask about a policy: its namespace, with the labels that name people. */
export function owner(ref, namespaces) {
  const labels = Object.entries(namespaces?.[ref.namespace] ?? {}).filter(([k]) => names.test(k));
  return h('span', { class: 'ask' }, 'Ask the owners of namespace ', link({ kind: 'Namespace', name: ref.namespace }),
    labels.length > 0 && ` (${labels.map(([k, v]) => `${k}: ${v}`).join(', ')})`, '.');
}
