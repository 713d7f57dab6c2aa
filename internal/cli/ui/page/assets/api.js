// Asks the server.

/** ask returns the answer to a question, or throws an Error with its message and status. */
export async function ask(path, { query, body, signal } = {}) {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const v of [value].flat()) if (v !== '' && v != null) url.searchParams.append(name, v);
  }
  const options = { signal };
  if (body) Object.assign(options, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error('kubectl overrule ui does not answer: has it been stopped in the terminal?');
  }
  const answer = await response.json().catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new Error(`kubectl overrule ui gave an unexpected answer (${response.status})`);
  });
  if (!response.ok) throw Object.assign(new Error(answer.error), { status: response.status });
  return answer;
}
