/** One event of a stream of server-sent events. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/**
 * CR, LF or CR LF, and nothing else: data may contain other characters at which editors break lines, such as U+2028.
 */
const LINE_END = /\r\n|\r|\n/g;

/**
 * Parses a stream of server-sent events (HTML standard, "Interpreting an event stream"), without `id` and `retry`,
 * which Shale's server doesn't write. The browser's EventSource can't send a token.
 *
 * @returns a function that takes the next piece of text and returns the events that it completes.
 */
export function eventReader(): (text: string) => readonly ServerEvent[] {
  /** The parts of the line that isn't complete. */
  let started: string[] = [];
  let endedInCr = false;
  let event = emptyEvent();
  return (text) => {
    if (text === '') return [];
    const complete: ServerEvent[] = [];
    // The second half of a CR LF.
    let from = endedInCr && text.startsWith('\n') ? 1 : 0;
    endedInCr = text.endsWith('\r');
    LINE_END.lastIndex = from;
    for (let end = LINE_END.exec(text); end !== null; end = LINE_END.exec(text)) {
      const line = [...started, text.slice(from, end.index)].join('');
      started = [];
      from = LINE_END.lastIndex;
      if (line !== '') takeField(event, line);
      else {
        if (event.data.length > 0) complete.push({ name: event.name, data: event.data.join('\n') });
        event = emptyEvent();
      }
    }
    if (from < text.length) started.push(text.slice(from));
    return complete;
  };
}

const emptyEvent = (): { name: string; readonly data: string[] } => ({ name: 'message', data: [] });

/** A line that begins with a colon is a comment: the heartbeat is one. */
function takeField(event: { name: string; readonly data: string[] }, line: string): void {
  const colon = line.indexOf(':');
  const field = colon === -1 ? line : line.slice(0, colon);
  const value = colon === -1 ? '' : line.slice(line.startsWith(' ', colon + 1) ? colon + 2 : colon + 1);
  if (field === 'event') event.name = value === '' ? 'message' : value;
  else if (field === 'data') event.data.push(value);
}
