import {
  type DisruptionAction,
  type DisruptionCause,
  type EffectiveAction,
  formatActions,
} from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import { annotations } from '../api/names.ts';
import { diffNodeConfigs } from '../machineconfig/diff.ts';
import type { ConfigChange, ConfigField, NodeConfig } from '../machineconfig/node-config.ts';
import { orderActions } from './action-order.ts';
import { type MatchedPolicy, policyOfFile, policyOfSshKey, policyOfUnit } from './match-policy.ts';
import { dangerOfRegistriesConf, isAllDecided, mirrorRuleChanges } from './registries-conf-change.ts';
import { sshdCauses } from './sshd-reload.ts';
import { type Withdrawal, withdrawnUnits } from './withdrawn-units.ts';

export interface ActionInput {
  readonly from: NodeConfig;
  readonly to: NodeConfig;
  /** The policies in force; all that decides besides the configs, such as the container runtime's unit, is in them. */
  readonly policies: ClusterPolicies;
  /** Whether an image carries both configs; in standard mode the daemon writes them. */
  readonly layered: boolean;
  /** The base images by digest, in layered mode; a different base always means Reboot. */
  readonly fromBase?: string | undefined;
  readonly toBase?: string | undefined;
}

export interface Decision {
  /**
   * What a node does, in this order: Drain, DaemonReload, services as each policy orders them; or Reboot alone; or
   * nothing.
   */
  readonly actions: readonly DisruptionAction[];
  /** One for each change, in the order of the changes. */
  readonly causes: readonly DisruptionCause[];
}

const REGISTRIES_CONF = '/etc/containers/registries.conf';
const reboot: readonly DisruptionAction[] = [{ type: 'Reboot' }];
/** What comes before the actions that a changed unit requires. */
const rereadUnits: Before = [[{ type: 'DaemonReload' }]];
type Before = readonly (readonly DisruptionAction[])[];
/** Directories that systemd reads units from; systemd has to reload its configuration after a change. */
const UNIT_FILES = /^\/(etc|usr\/lib|run)\/systemd\/system\//;

/**
 * Decides the actions that a change requires of a node. `shale plan`, the labels of images, the predictions on rendered
 * configs and the daemon in standard mode all use this function, so that they never disagree.
 *
 * A change that no policy covers means Reboot, and any Reboot means Reboot alone (MCO,
 * calculatePostConfigChangeAction). Unlike MCO, actions are deduplicated and ordered, and systemd rereads a changed
 * unit file (DaemonReload) before its services are reloaded or restarted.
 */
export function decideActions(input: ActionInput): Decision {
  const causes = diffNodeConfigs(input.from, input.to).map((change) => causeOf(change, input));
  if (input.layered) causes.push(...sshdCauses(input.from, input.to));
  if (input.fromBase !== input.toBase) causes.push(baseImageCause(input));
  const withdrawn = withdrawnUnits(input.from, input.to);
  return {
    actions: orderActions(causes.map((cause) => cause.actions)),
    causes: causes.map((cause) => withWithdrawals(cause, withdrawn)),
  };
}

/** The rule says what becomes of an action whose unit the target takes away. */
function withWithdrawals(
  cause: DisruptionCause,
  withdrawn: ReadonlyMap<string, Withdrawal>,
): DisruptionCause {
  const notes = cause.actions.flatMap((action) => {
    if (action.type !== 'Restart' && action.type !== 'Reload') return [];
    const how = withdrawn.get(action.service);
    if (how === undefined) return [];
    const instead = action.type === 'Restart' ? 'stopped' : 'left as it is';
    const unless = how === 'removed' ? ', unless the operating system has a unit of that name' : '';
    return [`${action.service} is ${how}, so it is ${instead}${unless}`];
  });
  return notes.length === 0 ? cause : { ...cause, rule: [cause.rule, ...notes].join('; ') };
}

function baseImageCause({ fromBase = '', toBase = '' }: ActionInput): DisruptionCause {
  const rule = `the base image changes from ${fromBase || 'an unknown one'} to ${toBase || 'an unknown one'}: Reboot`;
  return { subject: 'baseImage', kind: 'field', change: 'changed', rule, actions: [...reboot] };
}

function causeOf(change: ConfigChange, input: ActionInput): DisruptionCause {
  const { policies } = input;
  switch (change.kind) {
    case 'file': {
      const policy = policyOfFile(policies, change.path);
      const first = UNIT_FILES.test(change.path) ? rereadUnits : [];
      const cause = { subject: change.path, kind: 'file', change: change.change } as const;
      return { ...cause, ...(ownersMark(policy, change.path, first, input) ?? apply(policy, input, first)) };
    }
    case 'directory':
    case 'link':
      return {
        subject: change.path,
        kind: 'file',
        change: change.change,
        ...rebootBecause(`a ${change.kind} has no policy`),
      };
    case 'unit': {
      const policy = policyOfUnit(policies, change.name);
      const cause = { subject: change.name, kind: 'unit', change: change.change } as const;
      const ruling = ownersMark(policy, change.name, rereadUnits, input) ?? apply(policy, input, rereadUnits);
      return { ...cause, ...ruling };
    }
    case 'sshKey':
    case 'passwordHash':
      return {
        subject: change.user,
        kind: 'sshKey',
        change: change.change,
        ...apply(policyOfSshKey(policies), input),
      };
    case 'field':
      return {
        subject: change.field,
        kind: 'field',
        change: change.change,
        ...(sameBase(change.field, input) ?? rebootBecause(`${change.field} takes effect at boot`)),
      };
  }
}

/** A base image that is named by another tag is the same system as long as the digest is the same. */
function sameBase(field: ConfigField, { fromBase = '', toBase }: ActionInput): Ruling | undefined {
  if (field !== 'osImageURL' || fromBase === '' || fromBase !== toBase) return undefined;
  return { rule: `both names are of the base image ${fromBase}: no action`, actions: [] };
}

type Ruling = Pick<DisruptionCause, 'rule' | 'actions'>;

function rebootBecause(why: string): Ruling {
  return { rule: `${why}: Reboot`, actions: [...reboot] };
}

/**
 * The owner of a MachineConfig can mark its files and units as needing no reboot, or with the actions that they need.
 * The mark overrides a default policy, and an admin's policy overrides the mark. Systemd rereads a changed unit;
 * nothing is restarted that the mark doesn't name.
 *
 * @returns undefined if the mark doesn't apply: if both configs have the entry, both must mark it, because the removal
 *   of the unmarked one may need a reboot. The actions of both are needed.
 */
function ownersMark(
  policy: MatchedPolicy | undefined,
  subject: string,
  first: Before,
  { from, to }: ActionInput,
): Ruling | undefined {
  if (policy?.byAdmin === true) return undefined;
  const having = [from, to].filter((config) => config.files.has(subject) || config.units.has(subject));
  const marks = having.flatMap(({ marks: of }) => {
    const mark = of.get(subject);
    return mark === undefined ? [] : [mark];
  });
  if (having.length === 0 || marks.length < having.length) return undefined;
  const named = orderActions(marks);
  const rule =
    named.length === 0
      ? `marked as needing no reboot by the owner of its MachineConfig (${annotations.noReboot})`
      : `marked as needing ${formatActions(named)} by the owner of its MachineConfig (${annotations.actions})`;
  return { rule, actions: orderActions([...first, ...marks]) };
}

function apply(policy: MatchedPolicy | undefined, input: ActionInput, first: Before = []): Ruling {
  if (policy === undefined) return rebootBecause('no policy covers it');
  const { rule } = policy;
  if (policy.actions.flat().some(({ type }) => type === 'Special')) return special(rule, input);
  const actions = policy.actions.map((each) => each.flatMap(toAction));
  const reads = actions.flat().some(({ type }) => type === 'Reload' || type === 'Restart');
  return { rule, actions: orderActions([...(reads ? first : []), ...actions]) };
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

/**
 * Special is MCO's rule for registries.conf: reload the runtime, after a drain unless the change is safe. Changes that
 * an admin's policy for mirror objects decides are not judged again.
 */
function special(rule: string, { from, to, policies }: ActionInput): Ruling {
  const [before, after] = [textAt(from), textAt(to)];
  const decided = mirrorRuleChanges(before, after).flatMap((change) => {
    const policy = policies.imageMirrors?.find(({ kind }) => kind === change.kind)?.[change.change];
    return policy === undefined ? [] : [{ change, actions: policy.flatMap(toAction) }];
  });
  const changes = decided.map(({ change }) => change);
  const required = decided.map(({ actions }) => actions);
  const rules = changes.map(({ kind, source, change }) => `policy for a ${change} ${kind} rule (${source})`);
  if (decided.length > 0 && isAllDecided(before, after, changes)) {
    return { rule: rules.join(', '), actions: orderActions(required) };
  }
  if (policies.containerRuntimeUnit === undefined) {
    return rebootBecause(`${rule}: the policies in force do not name the container runtime's unit`);
  }
  const reload: DisruptionAction = { type: 'Reload', service: policies.containerRuntimeUnit };
  const danger = dangerOfRegistriesConf(before, after, changes);
  const drain: DisruptionAction[] = danger === undefined ? [] : [{ type: 'Drain' }];
  return {
    rule: [`${rule}: ${danger ?? 'only mirrors for digests are added'}`, ...rules].join('; '),
    actions: orderActions([[...drain, reload], ...required]),
  };
}

function textAt(config: NodeConfig): string | undefined {
  const file = config.files.get(REGISTRIES_CONF);
  return file && Buffer.from(file.contents).toString('utf8');
}
