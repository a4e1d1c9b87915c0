import type { Logger } from 'pino';
import { changeOf } from '../api/change.ts';
import type { EventRecorder } from './events.ts';

/** By which a process tells what it does. */
export interface Tellers {
  readonly log: Logger;
  readonly events: EventRecorder;
}

/**
 * @param config name of the rendered config that the work leads to; undefined where there is none, and nothing is added.
 * @returns the same tellers, with the change's id in every line (`change`) and on every event (label shale.dev/change).
 */
export function aboutChange({ log, events }: Tellers, config: string | undefined): Tellers {
  if (config === undefined || config === '') return { log, events };
  const change = changeOf(config);
  return {
    log: log.child({ change }),
    events: {
      normal: (object, reason, message) => events.normal(object, reason, message, change),
      warning: (object, reason, message) => events.warning(object, reason, message, change),
    },
  };
}

/** @returns what belongs in a line of a log that tells of a rendered config. */
export function changeField(config: string | undefined): { readonly change?: string } {
  return config === undefined || config === '' ? {} : { change: changeOf(config) };
}
