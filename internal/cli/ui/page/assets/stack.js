// The stack of policies: which rules are in effect on paths, which are not, and why.
import { h, groups, key, link, named, plural, value } from './dom.js';
import { owner } from './owner.js';
import { pathList } from './path.js';

const meaning = {
  Enforced: 'all its rules are in effect',
  PartiallyEnforced: 'some of its rules are in effect',
  Overridden: 'none of its rules is in effect',
  Inactive: 'its condition is not met here',
  Unreached: 'no request reaches this path',
  Conflicted: 'another policy has the same target',
  Invalid: 'it cannot be read',
  TargetNotFound: 'its target does not exist',
  NoPath: 'no traffic takes a path to its target',
};
const sign = { Enforced: '✓', PartiallyEnforced: '◐', Overridden: '✗', Inactive: '–', Unreached: '–' };

/** badge returns the state of a policy as a sign, its name and what it means. */
export function badge(state) {
  return h('span', { class: `badge ${state}`, title: meaning[state] }, h('span', { 'aria-hidden': 'true' }, `${sign[state] ?? '!'} `), state);
}

const blocks = { bare: 'own rules', object: 'own field', unset: 'unset list' };
const blockName = (b) => blocks[b] ?? b;

/** lostRule says why a value of a policy has no effect. */
function lostRule(l, namespaces) {
  return h('li', { class: 'lost' }, h('span', { class: 'no', 'aria-hidden': 'true' }, '✗ '), h('del', {}, value(l.value)), ' ',
    h('span', {}, 'of ', link(l.policy), ' has no effect: replaced by the ', blockName(l.toBlock), ' of ', link(l.to),
      l.inForce && [', itself replaced by ', link(l.inForce)], l.equal && ' (an equal value)', '. '),
    l.policy.namespace !== (l.inForce ?? l.to).namespace && owner(l.inForce ?? l.to, namespaces));
}

function ruleRow(r, namespaces) {
  return h('tr', {},
    h('th', { scope: 'row' }, h('code', {}, r.rule)),
    h('td', {}, r.from ? value(r.value) : h('span', { class: 'note' }, 'not in effect'),
      r.lost?.length > 0 && h('ul', { class: 'losses' }, r.lost.map((l) => lostRule(l, namespaces)))),
    h('td', {}, r.from && [link(r.from), h('span', { class: 'block' }, ` ${blockName(r.block)}`)]));
}

function contribution(c) {
  const target = h('span', { class: 'about' }, ' at ', c.target.kind, ' ', c.target.section ? `${key(c.target)} · ${c.target.section}` : key(c.target));
  return h('li', { class: 'layer' },
    h('p', { class: 'layer-head' }, link(c.policy), target, ' ', badge(c.state)),
    c.message && h('p', { class: 'note' }, c.message),
    c.replacedBy && h('p', {}, 'Replaced as a whole by ', link(c.replacedBy), '.'),
    c.blocks?.map((b) => h('p', { class: 'about' }, `${blockName(b.block)} (${b.strategy}): `, h('code', {}, b.rules.join(', ') || 'no rules'),
      b.when && [' when ', h('code', {}, b.when)], !b.tookPart && h('em', {}, ' – not applied: its condition is not met'))),
    c.unset?.length > 0 && h('p', { class: 'about' }, 'unsets ', h('code', {}, c.unset.join(', '))),
    h('ul', { class: 'ledger' },
      c.contributed?.map((rule) => h('li', {}, h('span', { class: 'yes', 'aria-hidden': 'true' }, '✓ '), h('code', {}, rule), h('span', { class: 'about' }, ' in effect'))),
      !c.replacedBy && c.lost?.map((l) => h('li', { class: 'lost' }, h('span', { class: 'no', 'aria-hidden': 'true' }, '✗ '), h('del', {}, h('code', {}, l.rule)),
        ' replaced by ', link(l.inForce ?? l.to), h('span', { class: 'block' }, ` ${l.inForce ? '' : blockName(l.toBlock)}`)))));
}

function bindings(all) {
  if (!all?.length) return null;
  return [h('h3', {}, 'Bound to the rule of the route'), h('ul', {}, all.map((b) => h('li', {}, h('code', {}, b.rule), ` ${b.state}`, b.by?.length > 0 && `: ${b.by.join(', ')}`)))];
}

function weakened(all) {
  return all?.length > 0 && h('ul', { class: 'warn-list' }, all.map((w) => h('li', {}, h('span', { 'aria-hidden': 'true' }, '⚠ '), h('code', {}, w.rule), ' of ', link(w.policy), ' is weakened by ',
    h('code', {}, w.byRule), ' of ', link(w.by), w.how === 'gate' ? ': it decides whether the rule has an effect.' : ': it is enough in its place.')));
}

/** explanationCards returns a card for the effective policies of each kind; paths on which they are equal share one. */
export function explanationCards(answer) {
  const keyOf = ({ path, ...rest }) => JSON.stringify(rest);
  return groups(answer.items, keyOf).map((alike, i) => {
    const x = alike[0];
    const id = `kind-${i}`;
    const lost = x.rules.reduce((n, r) => n + (r.lost?.length ?? 0), 0);
    return h('section', { class: 'card', 'aria-labelledby': id },
      h('h2', { id }, x.policyKind.kind, ' ', h('span', { class: 'about' }, `on ${plural(alike.length, 'path')} · ${plural(x.rules.filter((r) => r.from).length, 'rule')} in effect${lost ? ` · ${lost} without effect` : ''}`)),
      pathList(alike.map((a) => a.path), id),
      x.rules.length > 0 ? h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `${x.policyKind.kind} rules` }, h('table', { class: 'rules' },
        h('thead', {}, h('tr', {}, ['Rule', 'Value in effect', 'From'].map((t) => h('th', { scope: 'col' }, t)))),
        h('tbody', {}, x.rules.map((r) => ruleRow(r, answer.namespaces))))) : h('p', { class: 'note' }, 'No rule is in effect.'),
      weakened(x.weakened), bindings(x.bindings),
      x.notes?.map((n) => h('p', { class: 'note' }, n)),
      h('details', { 'data-key': `stack-${id}`, open: alike.length === answer.items.length || i < 4 },
        h('summary', {}, `Stack of ${plural(x.policies.length, 'policy')}, the highest first`),
        h('ol', { class: 'stack' }, x.policies.map(contribution))));
  });
}

/** outcomeCard returns what became of a policy over all its paths. */
export function outcomeCard(o) {
  const p = o.paths;
  return h('section', { class: 'card', 'aria-labelledby': 'outcome' }, h('h2', { id: 'outcome' }, 'Outcome ', badge(o.state)),
    h('p', {}, p.total === 0 ? 'It is on no path.' : `In effect with all rules on ${p.enforced} of ${plural(p.total, 'path')}, with some on ${p.partiallyEnforced}, overridden on ${p.overridden}, inactive on ${p.inactive}.`,
      p.unreached > 0 && ` No request reaches ${plural(p.unreached, 'path')}.`,
      o.message && ` ${o.message}`),
    h('h3', {}, 'Targets'), h('ul', {}, o.targets.map((t) => h('li', {}, t.target.name ? named(t.target) : `${t.target.kind} ${t.selector ?? ''}`,
      t.section && ` · ${t.section}`, t.accepted ? ' – accepted' : [` – ${t.reason ?? 'refused'} `, t.refused, t.by && [' by ', named(t.by)]]))),
    o.replacedBy?.length > 0 && [h('h3', {}, 'Replaced as a whole'), h('ul', {}, o.replacedBy.map((r) => h('li', {}, 'by ', named(r.policy), ` on ${plural(r.paths, 'path')}`)))],
    o.lost?.length > 0 && [h('h3', {}, 'Rules without effect'), h('ul', { class: 'ledger' }, o.lost.map((l) => h('li', { class: 'lost' }, h('span', { class: 'no', 'aria-hidden': 'true' }, '✗ '),
      h('del', {}, h('code', {}, l.rule)), ' replaced by ', named(l.inForce ?? l.to), ` on ${plural(l.paths, 'path')}`)))]);
}

/** outcomeTable lists policies with their state over all their paths. */
export function outcomeTable(outcomes) {
  if (!outcomes.length) return null;
  return h('section', { class: 'card', 'aria-labelledby': 'outcomes' }, h('h2', { id: 'outcomes' }, 'Policies here, over all their paths'),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Policies' }, h('table', {},
      h('thead', {}, h('tr', {}, ['Kind', 'Policy', 'State', 'Enforced on'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, outcomes.map((o) => h('tr', {}, h('td', { class: 'kind' }, o.policy.kind), h('td', {}, link(o.policy)), h('td', {}, badge(o.state)),
        h('td', {}, `${o.paths.enforced} of ${plural(o.paths.total, 'path')}`, o.paths.partiallyEnforced > 0 && `, in part on ${o.paths.partiallyEnforced}`)))))));
}
