import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import { settingOf } from '../../api/pool-settings/read-settings.ts';
import { formatSubject, type PolicyEntry, policyEntries } from '../../disruption/policy-entries.ts';
import { inWords } from '../../disruption/summarise-policies.ts';
import { buildView } from '../../view/build-view.ts';
import { changeOfPool, poolSummary } from '../../view/pool-view.ts';
import type { BuildRow, PolicyRow, PoolRow, Table } from '../model/view.ts';

export function buildRow(build: MachineOSBuild): BuildRow {
  const { name: _, since: _since, lastLine: _line, ...view } = buildView(build);
  const { metadata, status } = build;
  return {
    ...view,
    created: time(metadata.creationTimestamp) ?? 0,
    start: time(status?.buildStart),
    end: time(status?.buildEnd),
    way: status?.builder?.imageBuilderType,
    attempts: status?.attempts,
    image: status?.digestedImagePushSpec,
    baseImage: status?.baseImage,
    transitions: status?.transitions ?? [],
  };
}

function time(text: string | undefined): number | undefined {
  const value = Date.parse(text ?? '');
  return Number.isNaN(value) ? undefined : value;
}

/** @returns the disruption policies in force, from the operator's status; empty before the operator has written it. */
export function policyRows(configuration: MachineConfiguration | undefined): Table<PolicyRow> {
  const { nodeDisruptionPolicyStatus, poolPolicies = [] } = configuration?.status ?? {};
  const rows = [
    ...policyEntries(nodeDisruptionPolicyStatus?.clusterPolicies ?? {}).map((each) => policyRow(each)),
    // What only some pools have.
    ...poolPolicies.flatMap(({ pools, policies }) =>
      policyEntries(policies)
        .filter(({ policy }) => policy !== undefined)
        .map((each) => policyRow(each, ` (${pools.join(', ')})`)),
    ),
  ];
  return Object.fromEntries(rows.map((each) => [`${each.kind} ${each.subject}`, each]));
}

function policyRow(policy: PolicyEntry, pools = ''): PolicyRow {
  const { kind, actions, source } = policy;
  return {
    kind: kind === 'pattern' ? 'file' : kind,
    subject: `${formatSubject(policy)}${pools}`,
    actions: actions.map(inWords).join(', '),
    source: source === 'Admin' ? 'admin' : 'default',
  };
}

interface Reading {
  readonly row: PoolRow;
  /** ms since the epoch: when the row changes without a change of the pool. */
  readonly until: number;
}

/** Rows of unchanged pools: to ask schedules for the next maintenance window is slow. */
const readings = new WeakMap<MachineConfigPool, Reading>();

/**
 * @param now ms since the epoch.
 * @returns the row of a pool from its spec, annotations and status.
 */
export function poolRow(pool: MachineConfigPool, now: number): PoolRow {
  const known = readings.get(pool);
  if (known !== undefined && now < known.until) return known.row;
  const row = readPool(pool, now);
  const ends = (row.holds ?? []).map(({ until }) => Date.parse(until ?? '')).filter((end) => end > now);
  readings.set(pool, { row, until: Math.min(...ends, now + LONGEST_MS) });
  return row;
}

/** ms for which a row is kept: clocks may be set. */
const LONGEST_MS = 60_000;

function readPool(pool: MachineConfigPool, now: number): PoolRow {
  const {
    name: _name,
    config: _config,
    rollback: _held,
    tried: _tried,
    ...progress
  } = poolSummary(pool, now);
  const { from, to } = changeOfPool(pool);
  const { [annotations.sourceUrl]: url, [annotations.sourceRevision]: revision } =
    pool.metadata.annotations ?? {};
  return {
    ...progress,
    maxUnavailable:
      settingOf(pool, 'drivenBy') === undefined ? String(pool.spec.maxUnavailable ?? 1) : undefined,
    config: to,
    from: from === to ? undefined : from,
    source: url === undefined && revision === undefined ? undefined : { url, revision },
  };
}
