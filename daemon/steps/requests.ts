import {
  type PowerOffRequest,
  parsePowerOff,
  parseReboot,
  parseRepair,
  parseRetry,
  type RebootRequest,
  type RepairRequest,
  type RetryRequest,
} from '../../api/annotation-requests.ts';
import { errorMessage } from '../../api/error-message.ts';
import type { WarningReason } from '../../api/events.ts';
import { annotations } from '../../api/names.ts';
import { recordWarning, type StepContext } from './step-context.ts';

/** What people request of the node; undefined where they request nothing. */
export interface Requests {
  readonly repair: RepairRequest | undefined;
  readonly retry: RetryRequest | undefined;
  readonly reboot: RebootRequest | undefined;
  readonly powerOff: PowerOffRequest | undefined;
}

/**
 * Reads the requests that the node's own MachineConfigNode has. One that can't be read requests nothing, which is
 * reported once.
 */
export function requestsOf(context: StepContext): Requests {
  return {
    repair: requestIn(context, annotations.repair, {
      parse: parseRepair,
      invalid: 'InvalidRepairRequest',
      expected: 'JSON {"id", "by", "at"} as shale repair writes it; nothing is restored',
    }),
    retry: requestIn(context, annotations.retry, {
      parse: parseRetry,
      invalid: 'InvalidRetryRequest',
      expected:
        'JSON {"config", "image", "failedAt", "by", "at"} as shale retry writes it; nothing is retried',
    }),
    reboot: requestIn(context, annotations.reboot, {
      parse: parseReboot,
      invalid: 'InvalidRebootRequest',
      expected: 'JSON {"bootID", "by", "reason", "at"} as shale reboot writes it; nothing is rebooted',
    }),
    powerOff: requestIn(context, annotations.powerOff, {
      parse: parsePowerOff,
      invalid: 'InvalidPowerOffRequest',
      expected:
        'JSON {"bootID", "by", "reason", "leaseHolder", "at"} as shale maintenance start writes it; nothing is powered off',
    }),
  };
}

interface RequestKind<T> {
  /** @throws Error that says what of the annotation's text is wrong. */
  readonly parse: (text: string) => T;
  /** Of the event about one that can't be read. */
  readonly invalid: WarningReason;
  /** What would be right, and what doesn't happen. */
  readonly expected: string;
}

function requestIn<T>(
  context: StepContext,
  annotation: string,
  { parse, invalid, expected }: RequestKind<T>,
): T | undefined {
  const { channel, memory } = context;
  const text = channel.object?.metadata.annotations?.[annotation];
  const reported = memory.invalidRequests.get(annotation);
  memory.invalidRequests.delete(annotation);
  if (text === undefined) return undefined;
  try {
    return parse(text);
  } catch (error) {
    memory.invalidRequests.set(annotation, text);
    if (reported !== text)
      recordWarning(
        context,
        invalid,
        `Annotation ${annotation}: expected ${expected}: ${errorMessage(error)}`,
      );
    return undefined;
  }
}
