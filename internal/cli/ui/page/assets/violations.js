// Violations in existing policies.
import { h, groups, named, plural } from './dom.js';
import { ask } from './api.js';
import { pathList } from './path.js';

const constraints = new Set(['PolicyConstraint', 'ClusterPolicyConstraint']);
const by = (p) => (constraints.has(p.kind) ? `${p.kind} ${p.namespace ? `${p.namespace}/` : ''}${p.name}` : named(p));

/** violationsView lists violations; those that differ only in their path share an entry. */
export async function violationsView({ signal }) {
  const answer = await ask('/api/violations', { signal });
  const alike = groups(answer.items, (v) => JSON.stringify([v.code, v.action, v.policyKind, v.rule, v.policy, v.message]));
  return {
    title: 'Violations',
    data: JSON.stringify(answer),
    content: [
      h('h1', {}, 'Violations'),
      h('p', { class: 'lead' }, answer.total ? `${plural(answer.total, 'violation')} in existing policies.` : 'There are no violations in existing policies.'),
      answer.total > answer.items.length && h('p', { class: 'note' }, `The first ${answer.items.length} are shown.`),
      answer.warnings?.map((w) => h('p', { class: 'note' }, w)),
      alike.map((g, i) => h('section', { class: 'card' },
        h('h2', {}, g[0].code, ' ', h('span', { class: 'about' }, `${g[0].policyKind.kind} · on ${plural(g.length, 'path')} · a new one would cause: ${g[0].action}`)),
        h('p', {}, g[0].message),
        g[0].policy && h('p', {}, g[0].rule && [h('code', {}, g[0].rule), ' · '], by(g[0].policy)),
        pathList(g.map((v) => v.path), `violation-${i}`))),
    ],
  };
}
