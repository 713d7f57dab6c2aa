// The view of an object: what holds on its paths, and why.
import { h, key, named, plural, address } from './dom.js';
import { ask } from './api.js';
import { picture } from './picture.js';
import { explanationCards, outcomeCard, outcomeTable } from './stack.js';

function heading(object) {
  const facts = [];
  if (object.hostnames?.length) facts.push(['Hostnames', object.hostnames.slice(0, 10).join(', ')]);
  if (object.targets?.length) facts.push([object.policy ? 'Attached to' : 'Parents', object.targets.slice(0, 10).map((t, i) => [i > 0 && ', ', named(t)])]);
  return [
    h('p', { class: 'kicker' }, object.ref.kind, object.ref.group && h('span', { class: 'about' }, ` ${object.ref.group}`)),
    h('h1', {}, key(object.ref)),
    facts.length > 0 && h('dl', { class: 'facts' }, facts.map(([name, text]) => h('div', {}, h('dt', {}, name), h('dd', {}, text)))),
    h('p', {}, h('a', { class: 'button', href: `/change?object=${encodeURIComponent(address(object.ref))}` }, object.policy ? 'Try a change of this policy' : 'Try a change here')),
  ];
}

/** summary says in a sentence what holds. */
function summary(answer) {
  const { items, total, object } = answer;
  if (total === 0) return h('p', { class: 'lead' }, answer.message ? answer.message : object.policy ? 'This policy is on no path: see its outcome for the reason.' : 'No policy is on a path through this object, so no rule of a policy is in effect.');
  const lost = items.flatMap((x) => x.rules.flatMap((r) => (r.lost ?? []).map((l) => `${x.policyKind.kind} ${r.rule} ${key(l.policy)}`)));
  const n = new Set(lost).size;
  return h('p', { class: 'lead' }, `${plural(answer.outcomes.length, 'policy')} ${answer.outcomes.length === 1 ? 'is' : 'are'} on its paths. `,
    n ? `${plural(n, 'rule')} of them ${n === 1 ? 'has' : 'have'} no effect: struck through below, with the policy that replaces ${n === 1 ? 'it' : 'them'}.` : 'None of their rules is replaced by another policy.', items.some((x) => x.weakened?.length) && ' An override is weakened: see the warning below.');
}

const largePicture = 1000; // paths

/** pictureCard has the picture, which is loaded when it is open. */
function pictureCard(query, total) {
  const card = picture(query);
  return h('details', { class: 'card', 'data-key': 'picture', open: total <= largePicture, ontoggle: (event) => { if (event.target.open) card.load(); } },
    h('summary', {}, 'Picture'), card.box);
}

/** objectView returns the view of an object, by its kind and name. */
export function objectView({ kind, namespace, name }) {
  return async ({ signal }) => {
    const answer = await ask('/api/object', { query: { kind, namespace, name }, signal });
    const own = answer.object.policy && answer.outcomes.find((o) => o.policy.name === name && o.policy.namespace === namespace);
    return {
      title: `${answer.object.ref.kind} ${key(answer.object.ref)}`,
      data: JSON.stringify(answer),
      content: [
        heading(answer.object),
        own ? outcomeCard(own) : summary(answer),
        answer.total > 0 && answer.message && h('p', { class: 'note' }, answer.message),
        answer.total > answer.items.length && h('p', { class: 'note' }, `The first ${answer.items.length} of ${plural(answer.total, 'path')} are explained. Open a route to see its own.`),
        answer.total > 0 && pictureCard({ kind, namespace, name }, answer.total),
        explanationCards(answer),
        !own && outcomeTable(answer.outcomes),
      ],
    };
  };
}
