// The picture of the effective policies of an object: SVG of the server, as elements.
import { h } from './dom.js';

const elements = new Set(['svg', 'title', 'desc', 'g', 'a', 'rect', 'path', 'text', 'tspan', 'line', 'circle']);

/** load returns the document of an SVG image. The browser parses it, and runs nothing of it. */
function load(url) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('GET', url);
    request.responseType = 'document';
    request.onload = () => (request.status === 200 && request.responseXML ? resolve(request.responseXML) : reject(new Error('The picture cannot be drawn.')));
    request.onerror = () => reject(new Error('The picture cannot be loaded.'));
    request.send();
  });
}

/** insert shows a picture in a shadow root, so that its style, which is in its metadata, applies to it alone. */
function insert(host, svg) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const sheet = new CSSStyleSheet();
  const style = svg.querySelector('metadata');
  sheet.replaceSync(`:host { display: block; } svg { max-width: 100%; min-width: 60rem; height: auto; } a:focus-visible { outline: 2px solid; } ${style?.textContent ?? ''}`)
  for (const e of svg.querySelectorAll('*')) if (!elements.has(e.localName)) e.remove();
  svg.setAttribute('role', 'group'); // an image could have no links
  root.adoptedStyleSheets = [sheet];
  root.replaceChildren(document.importNode(svg, true));
}

/** picture returns a box, and the function that loads the picture into it, once. */
export function picture(query) {
  const host = h('div', {});
  const box = h('div', { class: 'picture', tabindex: '0', role: 'region', 'aria-label': 'Picture of the effective policies' }, host);
  let loading;
  const url = new URL('/api/picture', location.origin);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return {
    box,
    load() {
      loading ??= load(url).then((doc) => insert(host, doc.documentElement), (error) => host.replaceChildren(h('p', { class: 'problem' }, error.message)));
    },
  };
}
