import {
  type DisruptionAction,
  type DisruptionCause,
  type EffectiveAction,
  formatAction,
} from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/machine-configuration.ts';
import { diffNodeConfigs } from '../machineconfig/diff.ts';
import type { ConfigChange, NodeConfig } from '../machineconfig/node-config.ts';
import { defaultPolicySettings, type PolicySettings } from './default-policies.ts';
import { type MatchedPolicy, policyOfFile, policyOfSshKey, policyOfUnit } from './match-policy.ts';
import { judgeRegistriesConf } from './registries-conf-change.ts';

export interface ActionInput {
  readonly from: NodeConfig;
  readonly to: NodeConfig;
  /** The policies in force. */
  readonly policies: ClusterPolicies;
  /** The base images, by digest, where the change is one of images; another base always means Reboot. */
  readonly fromBase?: string;
  readonly toBase?: string;
  readonly settings?: PolicySettings;
}

export interface Decision {
  /** What a node does, in this order: Drain, DaemonReload, then services; or Reboot alone; or nothing. */
  readonly actions: readonly DisruptionAction[];
  /** Why: one for each change, in the order of the changes. */
  readonly causes: readonly DisruptionCause[];
}

const REGISTRIES_CONF = '/etc/containers/registries.conf';
const reboot: readonly DisruptionAction[] = [{ type: 'Reboot' }];
/** Files that systemd reads its units from; systemd itself has to be told of a change. */
const UNIT_FILES = /^\/(etc|usr\/lib|run)\/systemd\/system\//;

/**
 * The one function that says what a change asks of a node: `shale plan`, the labels of images and the daemon in standard
 * mode all ask it.
 *
 * Whatever no policy names means Reboot, and any Reboot means Reboot alone (MCO, calculatePostConfigChangeAction). Unlike
 * MCO, actions are deduplicated and ordered, and a changed unit file is made known to systemd (DaemonReload) before its
 * services are reloaded or restarted.
 */
export function decideActions(input: ActionInput): Decision {
  const causes = diffNodeConfigs(input.from, input.to).map((change) => causeOf(change, input));
  if (input.fromBase !== input.toBase) causes.push(baseImageCause(input));
  return { actions: order(causes.flatMap((cause) => cause.actions)), causes };
}

/** @returns the actions of several causes as one list. */
function order(actions: readonly DisruptionAction[]): DisruptionAction[] {
  if (actions.some(({ type }) => type === 'Reboot')) return [...reboot];
  const unique = [...new Map(actions.map((action) => [formatAction(action), action])).values()];
  const rank = ({ type }: DisruptionAction) => (type === 'Drain' ? 0 : type === 'DaemonReload' ? 1 : 2);
  return unique.sort((a, b) => rank(a) - rank(b));
}

function baseImageCause({ fromBase = '', toBase = '' }: ActionInput): DisruptionCause {
  const rule = `another base image (${fromBase || 'unknown'} to ${toBase || 'unknown'}): Reboot`;
  return { subject: 'baseImage', kind: 'field', change: 'changed', rule, actions: [...reboot] };
}

function causeOf(change: ConfigChange, input: ActionInput): DisruptionCause {
  const { policies } = input;
  switch (change.kind) {
    case 'file': {
      const policy = policyOfFile(policies, change.path);
      const cause = { subject: change.path, kind: 'file', change: change.change } as const;
      return { ...cause, ...apply(policy, input, UNIT_FILES.test(change.path)) };
    }
    case 'directory':
    case 'link':
      return {
        subject: change.path,
        kind: 'file',
        change: change.change,
        ...rebootBecause(`a ${change.kind} has no policy`),
      };
    case 'unit':
      return {
        subject: change.name,
        kind: 'unit',
        change: change.change,
        ...apply(policyOfUnit(policies, change.name), input, true),
      };
    case 'sshKey':
    case 'passwordHash':
      return {
        subject: change.user,
        kind: 'sshKey',
        change: change.change,
        ...apply(policyOfSshKey(policies), input, false),
      };
    case 'field':
      return {
        subject: change.field,
        kind: 'field',
        change: change.change,
        ...rebootBecause(`${change.field} takes effect at boot`),
      };
  }
}

type Ruling = Pick<DisruptionCause, 'rule' | 'actions'>;

function rebootBecause(why: string): Ruling {
  return { rule: `${why}: Reboot`, actions: [...reboot] };
}

function apply(policy: MatchedPolicy | undefined, input: ActionInput, isUnit: boolean): Ruling {
  if (policy === undefined) return rebootBecause('no policy names it');
  const { rule } = policy;
  if (policy.actions.some(({ type }) => type === 'Special')) return special(rule, input);
  const actions = policy.actions.flatMap(toAction);
  const reads = actions.some(({ type }) => type === 'Reload' || type === 'Restart');
  return { rule, actions: isUnit && reads ? order([{ type: 'DaemonReload' }, ...actions]) : order(actions) };
}

function toAction(action: EffectiveAction): DisruptionAction[] {
  switch (action.type) {
    case 'None':
    case 'Special':
      return [];
    case 'Reboot':
    case 'Drain':
    case 'DaemonReload':
      return [{ type: action.type }];
    case 'Reload':
      return action.reload === undefined
        ? [...reboot]
        : [{ type: 'Reload', service: action.reload.serviceName }];
    case 'Restart':
      return action.restart === undefined
        ? [...reboot]
        : [{ type: 'Restart', service: action.restart.serviceName }];
  }
}

/** Special is MCO's own rule for registries.conf: reload the runtime, after a drain unless the change is safe. */
function special(rule: string, { from, to, settings = defaultPolicySettings }: ActionInput): Ruling {
  const verdict = judgeRegistriesConf(textAt(from), textAt(to));
  const reload: DisruptionAction = { type: 'Reload', service: settings.containerRuntimeUnit };
  return verdict.safe
    ? { rule: `${rule}: only mirrors for digests are added`, actions: [reload] }
    : { rule: `${rule}: ${verdict.why}`, actions: [{ type: 'Drain' }, reload] };
}

function textAt(config: NodeConfig): string | undefined {
  const file = config.files.get(REGISTRIES_CONF);
  return file && Buffer.from(file.contents).toString('utf8');
}
