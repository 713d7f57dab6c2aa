// Follows the status of the data.

const trusted = globalThis.trustedTypes?.createPolicy('overrule', { createScriptURL: (url) => url });

/**
 * follow calls onStatus(status, lost) with each status; lost is true while the server
 * does not answer. Tabs share one connection where the browser has shared workers.
 */
export function follow(onStatus) {
  const receive = ({ status, lost }) => onStatus(status, Boolean(lost));
  const url = '/assets/events-worker.js';
  if (globalThis.SharedWorker) {
    const worker = new SharedWorker(trusted ? trusted.createScriptURL(url) : url, { name: 'overrule-events' });
    worker.port.onmessage = (event) => receive(event.data);
    addEventListener('pagehide', () => worker.port.postMessage('closed'));
    addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); });
    return;
  }
  let last;
  const stream = new EventSource('/api/events');
  stream.onmessage = (event) => receive({ status: (last = JSON.parse(event.data)) });
  stream.onerror = () => receive({ status: last, lost: true });
}
