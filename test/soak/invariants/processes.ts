import type { History, HistoryEvent } from '../history/history.ts';
import type { Violation } from './violation.ts';

/** Stack frames, as V8 prints them, and the line above them. */
const BREAKS_OFF = /^\s+at .+:\d+:\d+\)?$|^(?:Uncaught )?[A-Z]\w*Error\b|^FATAL ERROR/;

/** No process ends by itself, or prints why its runtime breaks off. */
export function checkProcesses({ events }: History): readonly Violation[] {
  return events.flatMap((event) => {
    const message = crashOf(event);
    return message === undefined ? [] : [{ invariant: 'processes', at: event.at, message }];
  });
}

function crashOf(event: HistoryEvent): string | undefined {
  if (event.what === 'raw line' && BREAKS_OFF.test(event.line)) return `${event.pod} printed: ${event.line}`;
  if (event.what !== 'ended' || event.expected || event.code === 0) return undefined;
  return `${event.pod} ended with ${event.code === null ? `signal ${event.signal}` : `exit code ${event.code}`}`;
}

/** A fault that the campaign could not bring about has tried nothing, and one that it could not end spoils the rest. */
export function checkFaults({ events }: History): readonly Violation[] {
  return events.flatMap((event) =>
    event.what === 'fault' && event.phase === 'fails'
      ? [
          {
            invariant: 'campaign',
            at: event.at,
            message: `fault ${event.fault} of ${event.subject}: ${event.details}`,
          },
        ]
      : [],
  );
}

/** A secret is in Secrets, and nowhere else. */
export function checkSecrets({ events, secrets }: History): readonly Violation[] {
  return events.flatMap((event) => {
    const where = placeOfSecret(event, secrets);
    return where === undefined
      ? []
      : [{ invariant: 'secrets', at: event.at, message: `a secret is in ${where}` }];
  });
}

function placeOfSecret(event: HistoryEvent, secrets: readonly string[]): string | undefined {
  if (event.what === 'secret found') return event.where;
  if (event.what !== 'object' || event.object.kind === 'Secret') return undefined;
  const text = JSON.stringify(event.object);
  const isIn = secrets.some(
    (secret) => text.includes(secret) || text.includes(Buffer.from(secret).toString('base64')),
  );
  return isIn ? `${event.object.kind} ${event.object.metadata.name}` : undefined;
}

/** What builds pushed is an image that an object names, or is deleted again. */
export function checkLeaks({ events }: History): readonly Violation[] {
  return events.flatMap((event) =>
    event.what === 'leaked images' && event.images.length > 0
      ? [{ invariant: 'leaks', at: event.at, message: `no object explains ${event.images.join(', ')}` }]
      : [],
  );
}
