import { InvalidArgumentError } from 'commander';
import { type DisruptionAction, formatAction } from '../../api/disruption-action.ts';
import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import { orderActions } from '../../disruption/action-order.ts';
import { decideActions } from '../../disruption/actions.ts';
import { SSHD } from '../../disruption/sshd-reload.ts';
import { emptyNodeConfig } from '../../machineconfig/node-config.ts';
import type { ServiceManager, ServiceState } from '../host/host.ts';
import { ServiceError } from '../host/systemctl.ts';

export interface ServiceActions {
  readonly services: ServiceManager;
  readonly actions: readonly DisruptionAction[];
  readonly limits: ActionLimits;
  /** Units that the update has taken away (disruption/withdrawn-units.ts). */
  readonly withdrawn: ReadonlySet<string>;
  /** Called, and waited for, before each action. */
  readonly before: (action: DisruptionAction) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Does an update's actions in their order. Drain has been done by the operator before it granted the update, and Reboot
 * is not an action on the running system.
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
  { services, limits, withdrawn, signal }: ServiceActions,
  action: DisruptionAction,
): Promise<void> {
  const limitMs = limitMsOf(limits, action);
  const limit = AbortSignal.timeout(limitMs);
  try {
    await act({ services, withdrawn, signal: AbortSignal.any([signal, limit]) }, action);
  } catch (cause) {
    if (signal.aborted || !limit.aborted || cause instanceof ServiceError) throw cause;
    const unit = 'service' in action ? action.service : 'systemd';
    const lines = 'service' in action ? await services.lastLines(action.service, signal) : '';
    const reason = [`took longer than ${limitMs / 1000} s`, lines].filter((text) => text !== '').join('\n');
    throw new ServiceError(action.type.toLowerCase(), unit, reason, { cause });
  }
}

async function act(
  { services, withdrawn, signal }: Pick<ServiceActions, 'services' | 'withdrawn' | 'signal'>,
  action: DisruptionAction,
): Promise<void> {
  if ('service' in action && withdrawn.has(action.service)) {
    // The operating system may have a unit of that name.
    if (!(await services.isLoaded(action.service, signal))) return endWithdrawn(services, action, signal);
  }
  switch (action.type) {
    case 'Drain':
    case 'Reboot':
      return;
    case 'DaemonReload':
      return services.daemonReload(signal);
    case 'Reload':
      return action.service === SSHD ? reloadSshd(services, signal) : services.reload(action.service, signal);
    case 'Restart':
      return services.restart(action.service, signal);
  }
}

/** What runs of a unit that is gone, or must not be started, is ended by what was to start it again. */
async function endWithdrawn(
  services: ServiceManager,
  { type, service }: Extract<DisruptionAction, { readonly service: string }>,
  signal: AbortSignal,
): Promise<void> {
  if (type === 'Reload' || !RUNNING.has(await services.state(service, signal))) return;
  await services.stop(service, signal);
}

const RUNNING: ReadonlySet<ServiceState> = new Set(['active', 'activating', 'deactivating', 'reloading']);

/** Fedora's name and Debian's, where the other may be an alias. */
const SSHD_UNITS = [SSHD, 'ssh.service'];

/** One that doesn't run reads its configuration when it starts, such as that of a socket. */
async function reloadSshd(services: ServiceManager, signal: AbortSignal): Promise<void> {
  for (const unit of SSHD_UNITS) {
    if ((await services.state(unit, signal)) !== 'active') continue;
    await services.reload(unit, signal);
    return;
  }
}

/** How long a service's action may take. */
export interface ActionLimits {
  /** ms, of every action that has no limit of its own. */
  readonly anyMs: number;
  /** ms by the action in words: `Restart(crio.service)`, or `Restart` for all of that type. */
  readonly ownMs: ReadonlyMap<string, number>;
}

/** @returns ms that an action may take: its own limit, else its type's, else every action's. */
export function limitMsOf({ anyMs, ownMs }: ActionLimits, action: DisruptionAction): number {
  return ownMs.get(formatAction(action)) ?? ownMs.get(action.type) ?? anyMs;
}

const LIMIT = /^(DaemonReload|(?:Reload|Restart)(?:\([A-Za-z0-9:_.@\\-]+\))?)=([1-9][0-9]{0,5})$/;

/**
 * Takes one more limit of its own into account, as commander's argParser.
 *
 * @param text such as `Restart(crio.service)=600`, in seconds.
 * @throws InvalidArgumentError for anything else.
 */
export function withActionLimit(
  text: string,
  before: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const [, action, seconds] = LIMIT.exec(text) ?? [];
  if (action === undefined) {
    throw new InvalidArgumentError(
      'Expected an action and seconds, such as Restart(crio.service)=600, Reload=60 or DaemonReload=60.',
    );
  }
  return new Map([...before, [action, Number(seconds) * 1000]]);
}

/**
 * What services have to be told of changed files, by the policies in force. A certificate never drains or reboots a
 * node: what no policy names asks for nothing.
 *
 * @param paths absolute. @returns DaemonReload first, then services in the order of every policy.
 */
export function serviceActions(paths: readonly string[], policies: ClusterPolicies): DisruptionAction[] {
  const file = { contents: new Uint8Array(), mode: 0o644, user: { id: 0 }, group: { id: 0 } };
  const files = new Map(paths.map((path) => [path, { path, ...file }]));
  const to = { ...emptyNodeConfig, files };
  const { causes } = decideActions({ from: emptyNodeConfig, to, policies, layered: false });
  return orderActions(causes.map(({ actions }) => actions.filter(isOfService)));
}

function isOfService({ type }: DisruptionAction): boolean {
  return type === 'DaemonReload' || type === 'Reload' || type === 'Restart';
}
