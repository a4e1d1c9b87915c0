/** What a pool's annotation asks of a monitoring system before updates start. */
export type Hold<Question> =
  | { readonly kind: 'none' }
  /** Updates wait while the answer to any of these is that something holds them. */
  | { readonly kind: 'named'; readonly questions: readonly Question[] }
  /** The annotation can't be read: updates wait. */
  | { readonly kind: 'unreadable' };

/** Matchers that an alert has to meet all of, each as Alertmanager's API takes it: `severity="critical"`. */
export type AlertMatchers = readonly string[];

/** What holds a pool's updates back (shale.dev/hold-on-alerts): an alert that meets one of these. */
export type AlertHold = Hold<AlertMatchers>;

/** A matcher of Alertmanager (its documentation, "Matcher"), with its value in quotes, and what separates it from the next. */
const MATCHER = /\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(,|$)/y;

/**
 * Reads matchers: those of a line, separated by commas, have to be met together; an alert of any line holds updates back.
 *
 * @throws Error that says what can't be read.
 */
export function parseAlertHold(text: string): AlertHold {
  const lines = text.split('\n').map((line) => line.trim().replace(/^\{(.*)\}$/, '$1'));
  const questions = lines.filter((line) => line !== '').map(matchersOf);
  if (questions.length === 0) throw new Error('it names no alert');
  return { kind: 'named', questions };
}

function matchersOf(line: string): AlertMatchers {
  const matchers: string[] = [];
  MATCHER.lastIndex = 0;
  for (let at = 0; at < line.length; at = MATCHER.lastIndex) {
    const [, name = '', operator = '', value = ''] = MATCHER.exec(line) ?? [];
    if (name === '')
      throw new Error(
        `${JSON.stringify(line.slice(at))}: expected matchers such as severity="critical", separated by commas`,
      );
    matchers.push(`${name}${operator}${value}`);
  }
  return matchers;
}

/** What holds a pool's updates back (shale.dev/hold-on-queries): a query of PromQL that has a result. */
export type QueryHold = Hold<string>;

/** Characters of a URL; proxies and servers take 8 KiB of it and more. */
const LONGEST_QUERY = 4096;

/**
 * Reads queries, one in a line. Whether they are PromQL only Prometheus can say.
 *
 * @throws Error that says what can't be read.
 */
export function parseQueryHold(text: string): QueryHold {
  const questions = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (questions.length === 0) throw new Error('it has no query');
  const long = questions.find((query) => encodeURIComponent(query).length > LONGEST_QUERY);
  if (long !== undefined)
    throw new Error(
      `a query is longer than ${LONGEST_QUERY} characters in a URL: record it by a rule of Prometheus`,
    );
  return { kind: 'named', questions };
}
