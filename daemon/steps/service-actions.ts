import { type DisruptionAction, formatAction } from '../../api/disruption-action.ts';
import type { ClusterPolicies } from '../../api/machine-configuration.ts';
import { decideActions } from '../../disruption/actions.ts';
import { emptyNodeConfig } from '../../machineconfig/empty-config.ts';

/**
 * What services have to be told of changed files, by the policies in force. A certificate never drains or reboots a node:
 * what no policy names asks for nothing.
 *
 * @param paths absolute. @returns without repetition, DaemonReload first.
 */
export function serviceActions(paths: readonly string[], policies: ClusterPolicies): DisruptionAction[] {
  const file = { contents: new Uint8Array(), mode: 0o644, user: { id: 0 }, group: { id: 0 } };
  const files = new Map(paths.map((path) => [path, { path, ...file }]));
  const { causes } = decideActions({ from: emptyNodeConfig, to: { ...emptyNodeConfig, files }, policies });
  const asked = causes.flatMap(({ actions }) => actions).filter(isOfService);
  const unique = [...new Map(asked.map((action) => [formatAction(action), action])).values()];
  return unique.sort((a, b) => rank(a) - rank(b));
}

function isOfService({ type }: DisruptionAction): boolean {
  return type === 'DaemonReload' || type === 'Reload' || type === 'Restart';
}

function rank({ type }: DisruptionAction): number {
  return type === 'DaemonReload' ? 0 : 1;
}
