import type { LayerEntry } from '../../image/layer/entry.ts';
import { enabledUnit } from './lab-updates.ts';

const BEATS = '/var/lib/lab-beats';
/** What it does is what is measured: it notes the time ten times a second. */
const UNIT = `[Service]\nExecStart=/bin/sh -c 'while :; do date +%%s%%3N >> ${BEATS}; sleep 0.1; done'\n`;

type Shell = (line: string) => Promise<string>;

/** @returns a service of a machine, whose absences can be measured. */
export const beatingService = (name: string): readonly LayerEntry[] => enabledUnit(name, UNIT);

/**
 * @param sh runs a command line on the machine. @returns what `work` returns, and the longest time meanwhile, in ms, in
 * which the service did not run.
 */
export async function longestGap<T>(sh: Shell, work: () => Promise<T>): Promise<{ value: T; gapMs: number }> {
  await sh(`: > ${BEATS}`);
  const value = await work();
  const beats = (await sh(`cat ${BEATS}`)).split('\n').map(Number);
  const gapMs = Math.max(...beats.map((beat, index) => beat - (beats[index - 1] ?? beat)));
  return { value, gapMs };
}
