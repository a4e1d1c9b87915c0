import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { ServiceManager } from '../host/host.ts';
import { ServiceError } from '../host/service-error.ts';
import { type ActionLimits, limitMsOf } from './action-limits.ts';

export interface ServiceActions {
  readonly services: ServiceManager;
  readonly actions: readonly DisruptionAction[];
  readonly limits: ActionLimits;
  /** Called, and waited for, before each action. */
  readonly before: (action: DisruptionAction) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Does an update's actions in their order. Drain has been done by the operator before it gave leave, and Reboot is none
 * for a running system.
 *
 * @throws ServiceError for an action that failed or took too long, with the unit's last lines; the signal's reason.
 */
export async function actOnServices(work: ServiceActions): Promise<void> {
  for (const action of work.actions) {
    work.signal.throwIfAborted();
    await work.before(action);
    await withinLimit(work, action);
  }
}

async function withinLimit(
  { services, limits, signal }: ServiceActions,
  action: DisruptionAction,
): Promise<void> {
  const limitMs = limitMsOf(limits, action);
  const limit = AbortSignal.timeout(limitMs);
  try {
    await act(services, action, AbortSignal.any([signal, limit]));
  } catch (cause) {
    if (signal.aborted || !limit.aborted || cause instanceof ServiceError) throw cause;
    const unit = 'service' in action ? action.service : 'systemd';
    const lines = 'service' in action ? await services.lastLines(action.service, signal) : '';
    const reason = [`took longer than ${limitMs / 1000} s`, lines].filter((text) => text !== '').join('\n');
    throw new ServiceError(action.type.toLowerCase(), unit, reason, { cause });
  }
}

async function act(services: ServiceManager, action: DisruptionAction, signal: AbortSignal): Promise<void> {
  switch (action.type) {
    case 'Drain':
    case 'Reboot':
      return;
    case 'DaemonReload':
      return services.daemonReload(signal);
    case 'Reload':
      return services.reload(action.service, signal);
    case 'Restart':
      return services.restart(action.service, signal);
  }
}
