import { nodePaths } from './names.ts';

const START = 'Changed on the node since Shale wrote it: ';
const ADVICE = `. Revert the change, put it into a MachineConfig, or have it overwritten: run shale repair for the node, or create ${nodePaths.forceFile} on it`;

/**
 * @param differing each path with what differs. @returns the message of a condition or event: what differs, and what
 * can be done about it.
 */
export function formatDriftMessage(differing: string): string {
  return `${START}${differing}${ADVICE}`;
}

/** @returns what differs, as given to formatDriftMessage; undefined for any other message. */
export function differingIn(message: string): string | undefined {
  if (!message.startsWith(START)) return undefined;
  const end = message.lastIndexOf(ADVICE);
  return message.slice(START.length, end === -1 ? undefined : end);
}
