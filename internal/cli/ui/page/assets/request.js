// Finds where a request goes, and what holds there.
import { h, named, plural } from './dom.js';
import { ask } from './api.js';
import { explanationCards } from './stack.js';
import { pathLine } from './path.js';

const fields = ['method', 'url', 'headers', 'gateway', 'port', 'sni', 'client-namespace'];
const precedence = {
  Hostname: 'a more specific hostname is first', RegularExpression: 'the implementation orders regular expressions and other paths', ExactPath: 'an exact path is first',
  LongerPath: 'a longer path is first', GRPCService: 'a longer service is first', GRPCMethod: 'a longer gRPC method is first', Method: 'a match with a method is first',
  Headers: 'a match with more headers is first', QueryParams: 'a match with more query parameters is first', OlderRoute: 'the older route is first',
  Name: 'the route with the first namespace and name is first', EarlierRule: 'the earlier rule of a route is first', Listener: 'a listener with a more specific hostname is first',
};

function field(name, label, { value, hint, tag = 'input', ...rest } = {}) {
  return h('div', { class: 'field' }, h('label', { for: name }, label),
    h(tag, { id: name, name, autocomplete: 'off', spellcheck: 'false', ...(tag === 'input' ? { type: 'text', value } : { rows: 2 }), 'aria-describedby': hint && `${name}-hint`, ...rest }, tag === 'textarea' && (value ?? '')),
    hint && h('p', { class: 'hint', id: `${name}-hint` }, hint));
}

function at(a) {
  const others = (a.candidates ?? []).filter((c) => c.after);
  return h('li', {}, h('p', {}, h('strong', { class: a.served ? 'yes' : 'no' }, a.served ? '✓ served by ' : '✗ not served by '), pathLine(a.path),
    a.match && [', match ', h('code', {}, a.match)], a.hostname && [', hostname ', h('code', {}, a.hostname)]),
  a.message && h('p', { class: 'problem' }, a.message),
  a.assumptions?.map((x) => h('p', { class: 'note' }, `Assumed: ${x.message}`)),
  others.length > 0 && h('ul', {}, others.slice(0, 20).map((c) => h('li', {}, 'not ', named({ kind: c.rule.kind.replace(/Rule$/, ''), namespace: c.rule.namespace, name: c.rule.name }), ` rule ${c.rule.section}: ${precedence[c.after] ?? c.after}`)),
    others.length > 20 && h('li', {}, `and ${others.length - 20} more`)));
}

function result(answer) {
  const r = answer.request;
  return [
    h('section', { class: 'card', 'aria-labelledby': 'where' }, h('h2', { id: 'where' }, h('code', {}, r.request), r.served ? ' is served' : ' is not served'),
      r.message && h('p', { class: 'problem' }, r.message), h('ul', { class: 'plain' }, r.at.slice(0, 50).map(at)),
      r.at.length > 50 && h('p', { class: 'note' }, `and at ${plural(r.at.length - 50, 'gateway')} more`)),
    r.served && answer.items.length === 0 && h('p', {}, 'No policy holds there.'),
    explanationCards(answer),
  ];
}

async function find(values, signal) {
  const request = `${values.method || 'GET'} ${values.url}`;
  const plain = /^(tls|tcp|udp):/.test(values.url) ? values.url : request;
  const headers = (values.headers ?? '').split('\n').map((l) => l.trim()).filter(Boolean);
  return ask('/api/request', { query: { request: plain, header: headers, gateway: values.gateway, port: values.port, sni: values.sni, 'client-namespace': values['client-namespace'] }, signal });
}

/** requestView has the form, filled from the address, and the answer. */
export async function requestView({ url, signal }) {
  const values = Object.fromEntries(fields.map((f) => [f, url.searchParams.get(f) ?? '']));
  let content = null;
  let data = url.search;
  if (values.url) {
    try {
      const answer = await find(values, signal);
      content = result(answer);
      data = JSON.stringify(answer);
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      content = h('p', { class: 'problem', role: 'alert' }, error.message);
    }
  }
  const submit = (event) => {
    event.preventDefault();
    const query = new URLSearchParams();
    for (const [name, text] of new FormData(event.target)) if (text.trim()) query.set(name, text.trim());
    document.dispatchEvent(new CustomEvent('overrule:go', { detail: `/request?${query}` }));
  };
  const advanced = ['gateway', 'port', 'sni', 'client-namespace'].some((f) => values[f]);
  return {
    title: 'Find a request',
    data,
    content: [
      h('h1', {}, 'Find a request'),
      h('p', { class: 'lead' }, 'Which rule of which route serves a request, and which policies hold there. Nothing is sent.'),
      h('form', { class: 'card', onsubmit: submit },
        h('div', { class: 'row' }, field('method', 'Method', { value: values.method, placeholder: 'GET' }),
          field('url', 'URL', { value: values.url, required: true, placeholder: 'https://shop.example.com/cart?x=1', hint: 'http, https, grpc, grpcs, tls, tcp or udp; tcp://:5432 for a connection' })),
        field('headers', 'Headers', { value: values.headers, tag: 'textarea', hint: 'one per line, name: value' }),
        h('details', { 'data-key': 'more-fields', open: advanced }, h('summary', {}, 'Gateway, port, server name, client in the mesh'),
          h('div', { class: 'row' }, field('gateway', 'Gateway', { value: values.gateway, placeholder: 'namespace/name' }), field('port', 'Port of the listener', { value: values.port, inputmode: 'numeric' }),
            field('sni', 'Server name (SNI)', { value: values.sni }), field('client-namespace', 'Namespace of the client', { value: values['client-namespace'] }))),
        h('button', { type: 'submit', class: 'button main' }, 'Find')),
      h('div', { 'aria-live': 'polite' }, content),
    ],
  };
}
