/** What Prometheus has seen when an alert is looked at. */
export interface AlertCase {
  readonly alert: string;
  /** Completes "ShaleX fires for …" or "… stays quiet about …". */
  readonly of: string;
  /** Values of metrics, one a minute from 0, in the notation of `promtool test rules`. */
  readonly series: Readonly<Record<string, string>>;
  /** Minutes after which the alert is looked at. */
  readonly minutes: number;
  /** What it says then; absent: nothing. */
  readonly fires?: { readonly labels: Readonly<Record<string, string>>; readonly summary: string };
}

const nodes = (phase: string, pool = 'worker') => `shale_operator_nodes{pool="${pool}",phase="${phase}"}`;
const failures = 'shale_operator_reconcile_failures_total{controller="pools"}';
const builds = (result: string) => `shale_builder_builds_total{result="${result}",way=""}`;
const failedAttempts = (reason: string) => `shale_builder_failed_attempts_total{reason="${reason}"}`;
const registryErrors = 'shale_builder_registry_errors_total{code="TOOMANYREQUESTS"}';
const up = (job: string, instance: string) => `up{job="${job}",instance="${instance}"}`;
const state = (node: string, of: string) => `shale_daemon_state{node="${node}",state="${of}"}`;
const staged = (node: string) => `shale_daemon_staged_bytes{node="${node}"}`;
const stepsFailed = (node: string) =>
  `shale_daemon_step_seconds_count{node="${node}",step="prepare",result="failed"}`;
const daemons = 'kube_daemonset_status_number_unavailable{namespace="shale-system",daemonset="shale-daemon"}';

export const ALERT_CASES: readonly AlertCase[] = [
  {
    alert: 'ShaleNodesDegraded',
    of: 'two nodes that stay degraded, once for their pool',
    series: { [nodes('degraded')]: '2x30', [nodes('degraded', 'infra')]: '0x30' },
    minutes: 16,
    fires: {
      labels: { pool: 'worker', severity: 'warning' },
      summary: '2 nodes of pool worker could not take their configuration',
    },
  },
  {
    alert: 'ShaleNodesDegraded',
    of: 'a node that recovers in time',
    series: { [nodes('degraded')]: '1x10 0x20' },
    minutes: 16,
  },
  {
    alert: 'ShaleRolloutStalled',
    of: 'a node at work for over an hour',
    series: { [nodes('working')]: '0 1x90', [nodes('updated')]: '3x91' },
    minutes: 70,
    fires: {
      labels: { pool: 'worker', severity: 'warning' },
      summary: 'Pool worker has nodes at work, and none was done for over an hour',
    },
  },
  {
    alert: 'ShaleRolloutStalled',
    of: 'the first node of a pool that was at rest for days',
    series: { [nodes('working')]: '0x600 1x60', [nodes('updated')]: '3x660' },
    minutes: 645,
  },
  {
    alert: 'ShaleRolloutStalled',
    of: 'a rollout that is done with a node every forty minutes',
    series: { [nodes('working')]: '1x200', [nodes('updated')]: '0x40 1x40 2x40 3x40 4x40' },
    minutes: 190,
  },
  {
    alert: 'ShaleDrainStuck',
    of: 'a drain that takes too long',
    series: { 'shale_operator_stuck_drains{pool="worker"}': '1x20' },
    minutes: 11,
    fires: {
      labels: { pool: 'worker', severity: 'warning' },
      summary: '1 drains of pool worker take longer than drains should',
    },
  },
  {
    alert: 'ShaleDrainStuck',
    of: 'drains that end',
    series: { 'shale_operator_stuck_drains{pool="worker"}': '1x5 0x15' },
    minutes: 11,
  },
  {
    alert: 'ShaleHooksOverdue',
    of: 'nodes whose hooks nobody clears',
    series: { 'shale_operator_overdue_hooks{pool="worker"}': '0 2x20' },
    minutes: 8,
    fires: {
      labels: { pool: 'worker', severity: 'warning' },
      summary: '2 nodes of pool worker wait for hooks that nobody clears',
    },
  },
  {
    alert: 'ShaleHooksOverdue',
    of: 'hooks that are cleared soon after',
    series: { 'shale_operator_overdue_hooks{pool="worker"}': '0 1x2 0x20' },
    minutes: 10,
  },
  {
    alert: 'ShaleNewNodesOverdue',
    of: 'new nodes that are not configured',
    series: { 'shale_operator_new_nodes{pool="worker",overdue="true"}': '2x20' },
    minutes: 6,
    fires: {
      labels: { pool: 'worker', severity: 'warning' },
      summary: "2 new nodes of pool worker don't get configured",
    },
  },
  {
    alert: 'ShaleNewNodesOverdue',
    of: 'new nodes that are still in time',
    series: {
      'shale_operator_new_nodes{pool="worker",overdue="true"}': '0x20',
      'shale_operator_new_nodes{pool="worker",overdue="false"}': '5x20',
    },
    minutes: 15,
  },
  {
    alert: 'ShaleOperatorDown',
    of: 'an operator that does not answer',
    series: { [up('shale-operator', 'a')]: '1 0x20' },
    minutes: 12,
    fires: {
      labels: { severity: 'critical' },
      summary: 'No operator of Shale answers',
    },
  },
  {
    alert: 'ShaleOperatorDown',
    of: 'an operator that is not there at all',
    series: { [up('machine-os-builder', 'a')]: '1x20' },
    minutes: 12,
    fires: {
      labels: { severity: 'critical' },
      summary: 'No operator of Shale answers',
    },
  },
  {
    alert: 'ShaleOperatorDown',
    of: 'one of two that is down',
    series: { [up('shale-operator', 'a')]: '0x20', [up('shale-operator', 'b')]: '1x20' },
    minutes: 12,
  },
  {
    alert: 'ShaleOperatorFailing',
    of: 'a controller that fails again and again',
    series: { [failures]: '0+1x60' },
    minutes: 50,
    fires: {
      labels: { controller: 'pools', severity: 'warning' },
      summary: "The operator's controller pools keeps failing",
    },
  },
  {
    alert: 'ShaleOperatorFailing',
    of: 'a failure that is over at the next try',
    series: { [failures]: '0x10 1x50' },
    minutes: 25,
  },
  {
    alert: 'ShaleDaemonUnavailable',
    of: 'nodes without a daemon',
    series: { [daemons]: '3x40' },
    minutes: 31,
    fires: { labels: { severity: 'warning' }, summary: "The daemon doesn't run on 3 nodes" },
  },
  {
    alert: 'ShaleDaemonUnavailable',
    of: 'a node that reboots',
    series: { [daemons]: '0x10 1x5 0x30' },
    minutes: 40,
  },
  {
    alert: 'ShaleStagingStalled',
    of: 'a node that gets no further, and no other',
    series: {
      [state('a', 'preparing')]: '1x60',
      [staged('a')]: '0 1000x60',
      [state('b', 'preparing')]: '1x60',
      [staged('b')]: '0+1000x60',
      [state('c', 'preparing')]: '0x60',
      [staged('c')]: '5000x60',
    },
    minutes: 50,
    fires: {
      labels: { node: 'a', severity: 'warning' },
      summary: 'Node a has brought nothing of its target to the disk for half an hour',
    },
  },
  {
    alert: 'ShaleStagingStalled',
    of: 'an image that comes slowly, and then is there',
    series: {
      [state('a', 'preparing')]: '1x50 0x20',
      [staged('a')]: '0 0 0 0 0 1x10 2x10 3x10 4x10 4x30',
    },
    minutes: 65,
  },
  {
    alert: 'ShaleDaemonFailing',
    of: 'a step that fails again and again',
    series: { [stepsFailed('a')]: '0+1x90', [stepsFailed('b')]: '1x90' },
    minutes: 80,
    fires: {
      labels: { node: 'a', severity: 'warning' },
      summary: 'The daemon of node a keeps failing',
    },
  },
  {
    alert: 'ShaleDaemonFailing',
    of: 'failures that are over within the hour',
    series: { [stepsFailed('a')]: '0+1x30 30x60' },
    minutes: 80,
  },
  {
    alert: 'ShaleBuildFailed',
    of: 'the first failure that a builder ever counts',
    series: { [builds('Failed')]: '_x10 1x20' },
    minutes: 15,
    fires: { labels: { severity: 'warning' }, summary: 'An image could not be built' },
  },
  {
    alert: 'ShaleBuildFailed',
    of: 'one more failure',
    series: { [builds('Failed')]: '4x90 5x20' },
    minutes: 100,
    fires: { labels: { severity: 'warning' }, summary: 'An image could not be built' },
  },
  {
    alert: 'ShaleBuildFailed',
    of: 'failures of more than an hour ago',
    series: { [builds('Failed')]: '_x10 1x90' },
    minutes: 90,
  },
  {
    alert: 'ShaleBuildFailed',
    of: 'builds that succeed',
    series: { [builds('Succeeded')]: '0+1x60' },
    minutes: 30,
  },
  {
    alert: 'ShaleBuildRetrying',
    of: 'an engine that stays away, at the longest back-off of five minutes',
    series: { [failedAttempts('EngineUnavailable')]: '1x4 2x4 3x4 4x4 5x4 6x4 7x4 8x4 9x4 10x4 11x4' },
    minutes: 54,
    fires: {
      labels: { reason: 'EngineUnavailable', severity: 'warning' },
      summary: 'Builds keep failing with EngineUnavailable, and are retried',
    },
  },
  {
    alert: 'ShaleBuildRetrying',
    of: 'a registry that is away, which has an alert of its own',
    series: { [failedAttempts('RegistryUnavailable')]: '1+1x60' },
    minutes: 60,
  },
  {
    alert: 'ShaleBuildRetrying',
    of: 'a Secret that is created within a minute',
    series: { [failedAttempts('SecretUnusable')]: '1 6x60' },
    minutes: 60,
  },
  {
    alert: 'ShaleRegistryErrors',
    of: 'a registry that keeps refusing',
    series: { [registryErrors]: '_ 1+1x60' },
    minutes: 40,
    fires: {
      labels: { code: 'TOOMANYREQUESTS', severity: 'warning' },
      summary: 'The registry keeps answering TOOMANYREQUESTS to the builder',
    },
  },
  {
    alert: 'ShaleRegistryErrors',
    of: 'a registry that refuses now and then',
    series: { [registryErrors]: '0x10 1x20 2x20' },
    minutes: 40,
  },
];
