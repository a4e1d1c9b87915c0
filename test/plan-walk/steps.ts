import fc from 'fast-check';
import type { PolicyAction } from '../../api/disruption-action.ts';
import type { NodeDisruptionPolicy } from '../../api/disruption-policy.ts';
import { slots } from './slots.ts';
import type { Version } from './stock-images.ts';
import type { Wanted } from './walk-cluster.ts';

/** What a walk changes at one step. Numbers choose among what there is, so that a shorter walk is a walk, too. */
export type WalkStep =
  /** Other contents of MachineConfigs; a deletion where the slot gets none. */
  | { readonly kind: 'edit'; readonly edits: readonly Edit[] }
  /** Every MachineConfig as it was at an earlier step, as `git revert` brings it about. */
  | { readonly kind: 'revert'; readonly back: number }
  /** Another disruption policy, which changes the label of an image and nothing on a node. */
  | { readonly kind: 'policy'; readonly subject: number; readonly actions: number }
  /** Opt-in or opt-out. */
  | { readonly kind: 'layering' }
  /** Another base image, by the walk's way of naming it. */
  | { readonly kind: 'base' }
  /** A boot that nobody asked for. */
  | { readonly kind: 'boot' };

interface Edit {
  readonly slot: number;
  readonly variant: number;
}

/** How the base image is named: in the MachineOSConfig by tag or digest, or in a MachineConfig by digest. */
export type BaseName = 'tag' | 'digest' | 'osImageURL';

export interface Walk {
  readonly start: readonly number[];
  readonly base: BaseName;
  readonly steps: readonly WalkStep[];
}

const chronyd: PolicyAction = { type: 'Restart', restart: { serviceName: 'chronyd.service' } };
const crio: PolicyAction = { type: 'Reload', reload: { serviceName: 'crio.service' } };
const own: PolicyAction = { type: 'Restart', restart: { serviceName: 'own.service' } };
const ACTIONS: readonly (readonly PolicyAction[])[] = [
  [{ type: 'None' }],
  [chronyd],
  [{ type: 'DaemonReload' }],
  [crio, chronyd],
  [{ type: 'Drain' }, chronyd],
  // A unit that the walk's configs bring, mask and take away.
  [own],
  [{ type: 'Reboot' }],
];

const FILES = [
  '/etc/walk',
  '/etc/chrony.conf',
  '/usr/local',
  '/var/lib/walk',
  '/opt',
  '/srv',
  '/root',
  '/home',
];
const UNITS = ['own.service', 'crio.service', 'sshd.service'];
const SUBJECTS = [...FILES, ...UNITS, 'sshkey'];

const OWN = ACTIONS.findIndex((actions) => actions.includes(own));

/** The index in ACTIONS that each subject has; below zero: no policy of its own. */
export type Policies = readonly number[];

/** A step of the kind 'policy' that has own.service restarted for changes of its own. */
export const restartOwn = { subject: SUBJECTS.indexOf('own.service'), actions: OWN + 1 } as const;

/** Most changes are live at first, so that what differs is seen. */
const firstPolicies: Policies = SUBJECTS.map((_, index) => index % 4);

/** @returns the policies after a step that changes one of them. */
function changedPolicies(before: Policies, subject: number, actions: number): Policies {
  const at = subject % SUBJECTS.length;
  const chosen = (actions % (ACTIONS.length + 1)) - 1;
  // Others would restart it where no config has brought it, and the plan can't know what a base image has.
  return before.with(at, chosen === OWN && SUBJECTS[at] !== 'own.service' ? 0 : chosen);
}

/** @returns what an admin would write for them. */
export function policyOf(policies: Policies): NodeDisruptionPolicy {
  const actionsOf = (subject: string) => ACTIONS[policies[SUBJECTS.indexOf(subject)] ?? -1];
  const sshkey = actionsOf('sshkey');
  return {
    files: FILES.flatMap((path) => {
      const actions = actionsOf(path);
      return actions === undefined ? [] : [{ path, actions: [...actions] }];
    }),
    units: UNITS.flatMap((name) => {
      const actions = actionsOf(name);
      return actions === undefined ? [] : [{ name, actions: [...actions] }];
    }),
    ...(sshkey === undefined ? {} : { sshkey: { actions: [...sshkey] } }),
  };
}

/** Those that running nodes take; the others are asked for now and then, to be refused. */
const EDITED = slots.flatMap(({ refused }, slot) => (refused === undefined ? [slot] : []));
const REFUSED = slots.flatMap(({ refused }, slot) => (refused === undefined ? [] : [slot]));

const anyEdit = (among: readonly number[]): fc.Arbitrary<Edit> =>
  fc.record({ slot: fc.constantFrom(...among), variant: fc.nat(9) });

const anyStep: fc.Arbitrary<WalkStep> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('edit' as const),
      edits: fc.array(anyEdit(EDITED), { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('edit' as const),
      edits: fc.array(anyEdit(REFUSED), { minLength: 1, maxLength: 1 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('revert' as const), back: fc.nat(9) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('policy' as const),
      subject: fc.nat(30),
      actions: fc.nat(30),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'layering' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'base' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'boot' as const }) },
);

/** @param length how many steps. @returns walks of that length; shrunk, they are shorter. */
export function anyWalk(length: number): fc.Arbitrary<Walk> {
  return fc.record({
    start: fc.array(fc.nat(9), { minLength: slots.length, maxLength: slots.length }),
    base: fc.constantFrom<BaseName[]>('tag', 'digest', 'osImageURL'),
    steps: fc.array(anyStep, { minLength: length, maxLength: length, size: 'max' }),
  });
}

/** All that is wanted of the pool of a walk. */
export interface WalkState {
  /** Of each slot, the variant. */
  readonly variants: readonly number[];
  readonly policies: Policies;
  readonly layered: boolean;
  /** Of the base image. */
  readonly version: Version;
}

/** @returns what a walk begins with. */
export function firstState({ start }: Walk): WalkState {
  const variants = slots.map((slot, index) => (start[index] ?? 0) % slot.variants.length);
  return { variants, policies: firstPolicies, layered: false, version: '1' };
}

/** @param earlier what was wanted before, oldest first. @returns what is wanted after a step. */
export function stateAfter(
  state: WalkState,
  step: Exclude<WalkStep, { readonly kind: 'boot' }>,
  earlier: readonly WalkState[],
): WalkState {
  switch (step.kind) {
    case 'edit': {
      const variants = [...state.variants];
      for (const { slot, variant } of step.edits) {
        variants[slot] = variant % (slots[slot]?.variants.length ?? 1);
      }
      return { ...state, variants };
    }
    case 'revert': {
      const { variants } = earlier.at(-1 - (step.back % Math.max(earlier.length, 1))) ?? state;
      return { ...state, variants };
    }
    case 'policy':
      return { ...state, policies: changedPolicies(state.policies, step.subject, step.actions) };
    case 'layering':
      return { ...state, layered: !state.layered };
    case 'base':
      return { ...state, version: state.version === '1' ? '2' : '1' };
  }
}

/** The base images of a walk, and how they are named. */
export interface BaseNames {
  readonly base: BaseName;
  readonly tag: string;
  readonly imageOf: (version: Version) => string;
}

/** @returns what the objects of the cluster say of it. */
export function wantedOf({ variants, policies, layered, version }: WalkState, names: BaseNames): Wanted {
  const { base, tag, imageOf } = names;
  return {
    variants,
    policies,
    osImageURL: base === 'osImageURL' ? imageOf(version) : undefined,
    layered: layered ? { baseImage: base === 'tag' ? tag : imageOf(version) } : undefined,
  };
}

/** @returns it as text, for a failure. */
export function formatState({ variants, ...rest }: WalkState): string {
  return JSON.stringify({
    ...rest,
    ...Object.fromEntries(slots.map(({ name }, at) => [name, variants[at]])),
  });
}
