import { cutText } from '../../api/cut-text.ts';

/** How much of each is shown; status.logTail has more. */
const LONGEST_CAUSE = 300;
const LONGEST_LINE = 200;
const LONGEST_STEP = 80;
const LINES_BEFORE = 4;

/** The end of a command, as Docker, BuildKit and buildah word it. */
const EXIT = /(?:exit (?<word>code|status):?|non-zero code:) (?<code>\d+)/;
/** What stands before and behind the command, in the same words; a shell has it as one argument. */
const BEFORE_COMMAND =
  /(?:The command '|process "|building at STEP "RUN |executor failed running \[)(?:\/bin\/sh -c )?/;
const AFTER_COMMAND = /' returned |" did not |": while |\]: exit |\n/;
/** Lines that engines print themselves: the step that begins, its container, the failure that is reported anyway. */
const OF_ENGINE =
  /^(?:step \d+\/\d+ ?:|\[sha256:\w+\] |cached: | ?-+> |removing intermediate container|subprocess exited with |(?:error: )?(?:the command '|process "|building at step "))/i;

/**
 * Why a step of a Containerfile failed, with the cause first: engines repeat the whole command, which may be longer
 * than what a condition shows.
 *
 * @param message of the engine. @param output its last lines.
 * @returns a clause without a full stop.
 */
export function describeFailedStep(message: string, output: readonly string[]): string {
  const exit = EXIT.exec(message)?.groups;
  // Not a command's end: a file that can't be parsed, an instruction other than RUN.
  if (exit === undefined) return cutText(message, LONGEST_CAUSE);
  const code = `exit ${exit['word'] ?? 'code'} ${exit['code']}`;
  const [, command] = message.split(BEFORE_COMMAND, 2);
  const step = command && cutText(`RUN ${command.split(AFTER_COMMAND, 1)[0]}`, LONGEST_STEP);
  const printed = output.filter((line) => !OF_ENGINE.test(line));
  const cause = printed.at(-1);
  if (cause === undefined) return `${step ?? 'a command'} ended with ${code} and printed nothing`;
  const before = printed.slice(-1 - LINES_BEFORE, -1).map((line) => cutText(line, LONGEST_LINE));
  const more = before.length === 0 ? '' : `. Before that it printed: ${before.join(' | ')}`;
  return `${cutText(cause.trim(), LONGEST_CAUSE)} (${code}${step === undefined ? '' : ` of ${step}`})${more}`;
}
