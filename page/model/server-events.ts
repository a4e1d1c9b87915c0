/** One event of a server-sent stream. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/**
 * Reads a stream of server-sent events (HTML standard, "Interpreting an event stream"), as far as Shale's own server
 * writes them. The browser's EventSource is not used because it can't send a token.
 *
 * @returns what takes the next piece of text and gives the events that are complete with it.
 */
export function eventReader(): (text: string) => readonly ServerEvent[] {
  let rest = '';
  return (text) => {
    const blocks = `${rest}${text}`.split('\n\n');
    rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => {
      const found = /^event: (.*)\ndata: (.*)$/.exec(block);
      return found === null ? [] : [{ name: found[1] ?? '', data: found[2] ?? '' }];
    });
  };
}
