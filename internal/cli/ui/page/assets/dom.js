// Builds elements. Data becomes text nodes and attributes only, never HTML.

/**
 * h returns an element. Attributes that are null, undefined or false are left out;
 * functions become listeners (onclick: f). Children are nodes, text, or lists of them.
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value == null || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...nodes(children));
  return element;
}

/** nodes returns children as a flat list of nodes and text. */
export function nodes(children) {
  return children.flat(Infinity).filter((c) => c != null && c !== false && c !== '');
}

/** plural returns "1 path" or "2 paths". */
export function plural(n, word) {
  const words = word === 'policy' && n !== 1 ? 'policies' : word + (n === 1 ? '' : 's');
  return `${n.toLocaleString('en')} ${words}`;
}

/** key returns the namespace and name of an object. */
export const key = (ref) => (ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name ?? '');

const short = new Set(['', 'gateway.networking.k8s.io']);

/** address returns the address of the view of an object. */
export function address(ref) {
  const kind = short.has(ref.group ?? '') ? ref.kind : `${ref.kind}.${ref.group}`;
  const parts = [kind, ref.namespace, ref.name].filter(Boolean).map(encodeURIComponent);
  return `/o/${parts.join('/')}`;
}

/** link returns a link to an object, by its namespace and name or another text. */
export function link(ref, text) {
  return h('a', { href: address(ref), class: 'ref' }, text ?? key(ref));
}

/** named returns "Kind namespace/name" with a link. */
export function named(ref) {
  return h('span', { class: 'named' }, h('span', { class: 'kind' }, ref.kind), ' ', link(ref));
}

/** kindsOfSections are the path elements that are part of the object before them. */
export const isSection = (kind) => kind === 'Listener' || kind.endsWith('Rule');

/** value returns a value as text: short ones on one line. */
export function value(v) {
  const flat = JSON.stringify(v);
  if (flat === undefined) return h('span', { class: 'note' }, 'none');
  if (typeof v !== 'object' || flat.length < 70) return h('code', { class: 'value' }, typeof v === 'string' ? v : flat);
  return h('pre', { class: 'value', tabindex: '0', 'aria-label': 'value' }, yaml(v).trimEnd());
}

/** yaml returns decoded JSON in the style of YAML, for reading. */
export function yaml(v, indent = '') {
  if (v === null || typeof v !== 'object') return `${scalar(v)}\n`;
  if (Array.isArray(v)) {
    if (v.length === 0) return '[]\n';
    return v.map((item) => `${indent}- ${yaml(item, `${indent}  `).trimStart()}`).join('');
  }
  const names = Object.keys(v);
  if (names.length === 0) return '{}\n';
  return names.map((name) => {
    const item = v[name];
    const nested = item !== null && typeof item === 'object' && Object.keys(item).length > 0;
    return `${indent}${scalar(name)}:${nested ? '\n' : ' '}${yaml(item, `${indent}  `)}`;
  }).join('');
}

function scalar(v) {
  if (typeof v === 'string' && /^[A-Za-z_/.][\w ./:@{}=-]*$/.test(v) && !/^(true|false|null|yes|no|on|off|~)$|: /i.test(v)) return v;
  return JSON.stringify(v);
}

/** groups returns the items in groups of an equal key, in the order of their first. */
export function groups(items, keyOf) {
  const out = new Map();
  for (const item of items) {
    const k = keyOf(item);
    if (!out.has(k)) out.set(k, []);
    out.get(k).push(item);
  }
  return [...out.values()];
}
