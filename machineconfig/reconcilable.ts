import { isDeepStrictEqual } from 'node:util';
import type { MachineConfig } from '../api/machine-config.ts';
import type { StorageOverride } from '../api/machine-configuration.ts';
import { nodePaths } from '../api/names.ts';
import { canonicalJson } from './canonical-json.ts';
import type { IgnitionConfig, PasswdUser } from './ignition/config.ts';
import { DEFAULT_LIMITS, type Limits } from './ignition/contents.ts';
import { parseIgnition } from './ignition/parse.ts';
import { parseMachineConfig } from './parse-machine-config.ts';
import type { ConfigProblems, Problem } from './problem.ts';
import { inMergeOrder } from './render.ts';
import { sourcesOf } from './sources.ts';

/** MCO's daemon watches for this file to force an update; a config must not create it. */
const FORCE_FILE = nodePaths.forceFile;
/** The only user whose keys and password MCO changes on a running node; hosts that aren't CoreOS may have another. */
export const DEFAULT_NODE_USER = 'core';

/**
 * Changes between two rendered configs that a running node can't apply (MCO's IsRenderedConfigReconcilable): only
 * Ignition does, at a node's first boot. The operator refuses them before a node is affected.
 *
 * @param update `running`: what the pool's nodes run.
 * @returns problems by MachineConfig; '' where no MachineConfig has the field any more, so that it was removed
 */
export function irreconcilable(
  update: ConfigUpdate & { readonly running: MachineConfig },
  options: ReconcileOptions = {},
): ConfigProblems[] {
  return compare(update, options);
}

/** An update from one rendered config to another. */
export interface ConfigUpdate {
  /** Undefined: none, so that Ignition has set up nothing of `target`. */
  readonly running: MachineConfig | undefined;
  readonly target: MachineConfig;
  /** The MachineConfigs that `target` was rendered from, in any order, as far as they are known. */
  readonly sources: readonly MachineConfig[];
}

/** How two configs are compared. */
export interface ReconcileOptions {
  readonly limits?: Limits | undefined;
  /** The user whose keys and password may change; DEFAULT_NODE_USER unless given. */
  readonly nodeUser?: string | undefined;
  /** Sections of storage that may differ: nodes that run keep what they have of them. */
  readonly overrides?: StorageOverrides | undefined;
}

/**
 * Sections that Shale writes itself, with a reboot: a node gets them from the first config, and with a change of its
 * pool.
 */
const WRITTEN: ReadonlySet<string> = new Set(['$.storage.directories', '$.storage.links']);

/**
 * What of a rendered config one node can't apply while it runs, whatever its pool ran before (MCO's daemon compares the
 * same two configs, reconcilable in pkg/daemon/update.go).
 *
 * @param update `running`: what the node runs, or was provisioned with by Ignition.
 * @param options overrides count for a node that runs a config.
 * @returns problems by MachineConfig, as {@link irreconcilable} does
 */
export function irreconcilableOnNode(update: ConfigUpdate, options: ReconcileOptions = {}): ConfigProblems[] {
  // Of a node without a config it is not known that Ignition has set up anything at all.
  const overrides = update.running === undefined ? undefined : options.overrides;
  return compare(update, { ...options, overrides }).filter(
    ({ problems }) => !problems.every(({ path }) => WRITTEN.has(path)),
  );
}

/** spec.irreconcilableValidationOverrides.storage of the MachineConfiguration. */
export type StorageOverrides = ReadonlySet<StorageOverride>;

function compare(
  { running, target, sources }: ConfigUpdate,
  { limits = DEFAULT_LIMITS, ...options }: ReconcileOptions,
): ConfigProblems[] {
  const from = running === undefined ? { config: {} } : ignitionOf(running, limits);
  const to = ignitionOf(target, limits);
  const unreadable = [from, to].flatMap((parsed) => ('problems' in parsed ? [parsed.problems] : []));
  if ('problems' in from || 'problems' in to) {
    return unreadable.map((problems) => ({ machineConfig: '', problems }));
  }
  const changes = changesOf(from.config, to.config, options);
  // Only who is to be blamed needs to be found in the sources.
  const parsed =
    changes.length === 0 ? [] : inMergeOrder(sources).map((source) => parseMachineConfig(source, limits));
  const problems = changes.map((problem) => ({
    machineConfig: sourcesOf(problem.path, to.config, parsed).at(-1) ?? '',
    problems: [problem],
  }));
  return [...problems, ...fipsChange({ running, target, sources })];
}

type Ignition = { readonly config: Partial<IgnitionConfig> } | { readonly problems: readonly Problem[] };

function ignitionOf({ spec, metadata }: MachineConfig, limits: Limits): Ignition {
  if (spec.config === undefined) return { config: {} };
  const parsed = parseIgnition(spec.config, limits);
  if (parsed.ok) return { config: parsed.config };
  return {
    problems: parsed.problems.map((problem) => ({
      ...problem,
      reason: `${problem.reason} in ${metadata.name}`,
    })),
  };
}

/** Sections that must not change. */
const FIXED: readonly {
  readonly path: string;
  readonly what: string;
  readonly of: (config: Partial<IgnitionConfig>) => unknown;
  /** The override that permits it. */
  readonly unless?: StorageOverride;
}[] = [
  { path: '$.storage.disks', what: 'disks', of: ({ storage }) => storage?.disks, unless: 'Disks' },
  {
    path: '$.storage.filesystems',
    what: 'filesystems',
    of: ({ storage }) => storage?.filesystems,
    unless: 'FileSystems',
  },
  { path: '$.storage.raid', what: 'RAID arrays', of: ({ storage }) => storage?.raid, unless: 'Raid' },
  // MCO leaves LUKS out, and a changed volume goes unnoticed there.
  { path: '$.storage.luks', what: 'LUKS volumes', of: ({ storage }) => storage?.luks },
  { path: '$.storage.directories', what: 'directories', of: ({ storage }) => storage?.directories },
  { path: '$.passwd.groups', what: 'groups', of: ({ passwd }) => passwd?.groups },
  {
    path: '$.kernelArguments.shouldExist',
    what: 'kernel arguments',
    of: (c) => c.kernelArguments?.shouldExist,
  },
  {
    path: '$.kernelArguments.shouldNotExist',
    what: 'kernel arguments',
    of: (c) => c.kernelArguments?.shouldNotExist,
  },
];

const UNCHANGED = 'the same as the nodes run; to change it, replace the nodes';

function changesOf(
  from: Partial<IgnitionConfig>,
  to: Partial<IgnitionConfig>,
  { nodeUser = DEFAULT_NODE_USER, overrides = new Set() }: Omit<ReconcileOptions, 'limits'>,
): Problem[] {
  const fixed = FIXED.filter(({ unless }) => unless === undefined || !overrides.has(unless));
  const changed = fixed
    .filter(({ of }) => !isDeepStrictEqual(of(from) ?? [], of(to) ?? []))
    .map(({ path, what }) => ({
      path,
      reason: `${what} can not change on a running node`,
      expected: UNCHANGED,
    }));
  return [...changed, ...linkChanges(from, to), ...userChanges(from, to, nodeUser), ...forbiddenFiles(to)];
}

/** Links may be removed (bug 1677198), but not added or changed. */
function linkChanges(from: Partial<IgnitionConfig>, to: Partial<IgnitionConfig>): Problem[] {
  const links = to.storage?.links ?? [];
  return links.length === 0 || isDeepStrictEqual(from.storage?.links, links)
    ? []
    : [{ path: '$.storage.links', reason: 'links can not change on a running node', expected: UNCHANGED }];
}

function userChanges(
  from: Partial<IgnitionConfig>,
  to: Partial<IgnitionConfig>,
  nodeUser: string,
): Problem[] {
  const users = to.passwd?.users ?? [];
  const before = new Map(from.passwd?.users?.map((user) => [user.name, canonicalJson(user)]));
  return users.flatMap((user, index): Problem[] => {
    const why = before.get(user.name) === canonicalJson(user) ? undefined : whyNotUser(user, nodeUser);
    return why === undefined
      ? []
      : [
          {
            path: `$.passwd.users[${index}]`,
            reason: why,
            expected: `sshAuthorizedKeys or passwordHash of the user ${nodeUser} and nothing else`,
          },
        ];
  });
}

function whyNotUser(
  { name, sshAuthorizedKeys = [], passwordHash, ...rest }: PasswdUser,
  nodeUser: string,
): string | undefined {
  if (name !== nodeUser) return `user ${name} can not be set up on a running node`;
  const [field] = Object.keys(rest);
  if (field !== undefined) return `${field} of user ${name} can not change on a running node`;
  return sshAuthorizedKeys.length > 0 || passwordHash !== undefined
    ? undefined
    : `user ${name} has neither keys nor a password`;
}

function forbiddenFiles(to: Partial<IgnitionConfig>): Problem[] {
  return (to.storage?.files ?? []).flatMap(({ path }, index) =>
    path === FORCE_FILE
      ? [
          {
            path: `$.storage.files[${index}].path`,
            reason: `${path} is a switch of the daemon`,
            expected: 'another',
          },
        ]
      : [],
  );
}

function fipsChange({ running, target, sources }: ConfigUpdate): ConfigProblems[] {
  const before = running?.spec.fips ?? false;
  if (before === (target.spec.fips ?? false)) return [];
  const setting = inMergeOrder(sources).findLast((source) => source.spec.fips === true);
  const problem = {
    path: 'spec.fips',
    reason: 'FIPS mode can not change on a running cluster',
    expected: String(before),
  };
  return [{ machineConfig: setting?.metadata.name ?? '', problems: [problem] }];
}
