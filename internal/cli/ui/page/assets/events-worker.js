// The one stream of events that all tabs of a browser share: HTTP/1.1 allows few
// connections. It sends each tab the last status at once.
let last;
const ports = new Set();

function send(message) {
  last = message;
  for (const port of ports) port.postMessage(message);
}

const stream = new EventSource('/api/events');
stream.onmessage = (event) => send({ status: JSON.parse(event.data) });
stream.onerror = () => send({ lost: true, status: last?.status });

self.onconnect = ({ ports: [port] }) => {
  ports.add(port);
  port.onmessage = () => ports.delete(port); // the tab says that it is closed
  if (last) port.postMessage(last);
};
