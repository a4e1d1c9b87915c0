import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { ServiceManager } from '../host/host.ts';

export interface ServiceActions {
  readonly services: ServiceManager;
  readonly actions: readonly DisruptionAction[];
  /** ms that one action may take. */
  readonly limitMs: number;
  /** Called, and waited for, before each action. */
  readonly before: (action: DisruptionAction) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Does an update's actions in their order. Drain has been done by the operator before it gave leave, and Reboot is none
 * for a running system.
 *
 * @throws ServiceError for an action that failed, the time limit's TimeoutError for one that hangs.
 */
export async function actOnServices(work: ServiceActions): Promise<void> {
  for (const action of work.actions) {
    work.signal.throwIfAborted();
    await work.before(action);
    await act(work.services, action, AbortSignal.any([work.signal, AbortSignal.timeout(work.limitMs)]));
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
