// Tries a change: the verdict of the admission server, and what it would do.
import { h, nodes, groups, link, named, plural, value } from './dom.js';
import { ask } from './api.js';
import { pathList } from './path.js';

const maxSize = 1 << 20;

function reason(r) {
  return h('li', {}, h('p', {}, h('strong', {}, r.code), r.rule && [' ', h('code', {}, r.rule)], r.policy && [' · ', named(r.policy)]), h('p', { class: 'message' }, r.message));
}

function verdict(v) {
  return h('section', { class: `card verdict ${v.allowed ? 'allowed' : 'denied'}` },
    h('h3', {}, h('span', { 'aria-hidden': 'true' }, v.allowed ? '✓ ' : '✗ '), v.allowed ? 'Allowed' : 'Denied', ': ', v.operation, ' ', named(v.object)),
    v.moved?.length > 0 && h('p', {}, `Requests that move to another route, rule or listener lose ${v.moved.join(', ')}.`),
    h('p', {}, `${v.allowed ? 'It changes' : 'It would change'} ${plural(v.changes.paths, 'path')} in ${plural(v.changes.namespaces, 'namespace')}.`),
    v.reasons?.length > 0 && h('ul', { class: 'plain' }, v.reasons.map(reason)),
    v.warnings?.length > 0 && [h('h4', {}, 'Warnings'), h('ul', { class: 'plain' }, v.warnings.map(reason))]);
}

function side(label, v) {
  return h('td', { class: label }, v ? [value(v.value), h('p', { class: 'about' }, 'from ', link(v.from), ` ${v.block === 'bare' ? 'own rules' : v.block}`)] : h('span', { class: 'note' }, 'none'));
}

const action = (r) => (r.before ? (r.after ? 'changed' : 'removed') : 'added');

function differences(answer) {
  if (answer.changes.items.length === 0) return h('p', {}, 'No effective policy differs.');
  return groups(answer.changes.items, ({ path, ...rest }) => JSON.stringify(rest)).map((alike, i) => {
    const c = alike[0];
    return h('section', { class: 'card' }, h('h3', {}, `${c.policyKind.kind} on ${plural(alike.length, 'path')}`), pathList(alike.map((a) => a.path), `change-${i}`),
      h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Differences' }, h('table', { class: 'rules' },
        h('thead', {}, h('tr', {}, ['Rule', 'Before', 'After'].map((t) => h('th', { scope: 'col' }, t)))),
        h('tbody', {}, c.rules.map((r) => h('tr', {}, h('th', { scope: 'row' }, h('code', {}, r.rule), h('span', { class: `diff ${action(r)}` }, action(r))), side('before', r.before), side('after', r.after)))))));
  });
}

function result(answer) {
  return [
    h('h2', {}, 'Verdict'), answer.verdicts.items.length ? answer.verdicts.items.map(verdict) : h('p', {}, 'No object of the change affects effective policies.'),
    answer.warnings?.map((w) => h('p', { class: 'note' }, w)),
    h('h2', {}, 'Before and after'), differences(answer),
    answer.total > answer.changes.items.length && h('p', { class: 'note' }, `The first ${answer.changes.items.length} of ${plural(answer.total, 'path')}.`),
  ];
}

/** present returns the manifest of an object that the address names, to begin with. */
async function present(address, signal) {
  const parts = address.split('/').slice(2).map(decodeURIComponent);
  const [kind, namespace, name] = parts.length === 3 ? parts : [parts[0], '', parts[1]];
  const answer = await ask('/api/manifest', { query: { kind, namespace, name }, signal });
  return answer.manifest;
}

function problem(message) { return h('pre', { class: 'problem', role: 'alert' }, message); }

/** changeView has the box for the manifest, and the verdict. */
export async function changeView({ url, signal }) {
  const object = url.searchParams.get('object');
  let text = '';
  let failed = null;
  try {
    if (object?.startsWith('/o/')) text = await present(object, signal);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    failed = problem(error.message);
  }
  const box = h('textarea', { id: 'manifest', name: 'manifest', rows: 18, spellcheck: 'false', autocomplete: 'off', required: true, 'aria-describedby': 'manifest-hint' });
  box.value = text;
  const output = h('div', { id: 'verdict', 'aria-live': 'polite' }, failed);
  const stale = h('p', { class: 'note', role: 'status', hidden: true }, 'The objects have changed since: evaluate the change again.');
  const pick = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    if (file.size > maxSize) output.replaceChildren(problem(`${file.name} is larger than 1 MiB: use kubectl overrule check -f`));
    else box.value = await file.text();
  };
  const submit = async (event) => {
    event.preventDefault();
    stale.hidden = true;
    output.setAttribute('aria-busy', 'true');
    try {
      const answer = await ask('/api/change', { body: { manifest: box.value, delete: document.getElementById('delete').checked } });
      output.replaceChildren(...nodes(result(answer)));
    } catch (error) {
      output.replaceChildren(problem(error.message));
    }
    output.removeAttribute('aria-busy');
  };
  return {
    title: 'Try a change',
    content: [
      h('h1', {}, 'Try a change'),
      h('p', { class: 'lead' }, 'Whether the admission server would allow a change, and what it would do. Nothing is written.'),
      h('form', { class: 'card', onsubmit: submit },
        h('div', { class: 'field' }, h('label', { for: 'manifest' }, 'Manifest'), box, h('p', { class: 'hint', id: 'manifest-hint' }, 'One or more objects as YAML or JSON. An object that exists is updated, any other created.')),
        h('div', { class: 'row end' },
          h('div', { class: 'field' }, h('label', { for: 'file' }, 'Or pick a file'), h('input', { id: 'file', type: 'file', accept: '.yaml,.yml,.json', onchange: pick })),
          h('div', { class: 'check' }, h('input', { id: 'delete', type: 'checkbox' }), h('label', { for: 'delete' }, 'Delete these objects')),
          h('button', { type: 'submit', class: 'button main' }, 'Evaluate'))),
      stale, output,
    ],
    onVersion: () => { stale.hidden = output.childElementCount === 0; },
  };
}
