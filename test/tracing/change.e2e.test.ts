/** One trace through three processes: each alone shows only its own spans. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { changeOf } from '../../api/change-id.ts';
import { ConfigMaps, Events } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { DEFAULT_NAMESPACE, labels, SWITCH_CONFIG_MAP } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { connectWith } from '../../workshop/sandbox/control-plane.ts';
import { startSandbox } from '../../workshop/sandbox/start.ts';
import { waitUntil } from '../../workshop/sandbox/wait-until.ts';
import { deadline } from '../fixtures/patience.ts';
import { type Collector, type ReceivedSpan, startCollector } from './collector.ts';

const MINUTES = 60_000;
const NODES = 3;

afterEach(() => vi.unstubAllEnvs());

test(
  'a change is one trace of operator, builder and every daemon',
  async () => {
    const collector = await startCollector();
    // The sandbox hands it on to the processes.
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.endpoint);
    vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '100');
    const dir = await mkdtemp(path.join(tmpdir(), 'shale-traces-'));
    const signal = deadline(12 * MINUTES);
    const choice = { assets: undefined, kubeconfig: undefined };
    const sandbox = await startSandbox({
      dir,
      choice,
      nodes: 'directory',
      onProgress: () => undefined,
      signal,
    });
    try {
      const client = createApiClient(await connectWith(sandbox.record.access));
      await client.create(
        ConfigMaps,
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: SWITCH_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
          data: { enabled: 'true', imageRepository: `${sandbox.record.registryHost}/os/{pool}` },
        },
        { namespace: DEFAULT_NAMESPACE, signal },
      );
      // Its nodes have what its first image carries.
      const first = await rolledOut(collector, undefined, signal);
      await client.create(MachineConfigs, aKernelArgument, { signal });
      const rollout = await rolledOut(collector, first, signal);
      const pool = await client.get(MachineConfigPools, 'worker', { signal });
      const config = pool.spec.configuration?.name ?? '';
      const change = changeOf(config);
      expect(rollout).toMatchObject({ traceId: change, attributes: { 'shale.config': config } });

      const all = collector.spans.filter(
        ({ traceId, attributes }) =>
          traceId === change && (attributes['shale.pool'] ?? 'worker') === 'worker',
      );
      const [render] = all.filter(({ name }) => name === 'render');
      expect(render).toMatchObject({ service: 'shale-operator', parentSpanId: undefined });
      expect(rollout.parentSpanId).toBe(render?.spanId);
      const [build] = all.filter(({ name }) => name === 'build');
      expect(build).toMatchObject({
        service: 'machine-os-builder',
        parentSpanId: render?.spanId,
        failed: false,
      });
      const steps = all.filter(({ parentSpanId }) => parentSpanId === build?.spanId);
      expect(steps.map(({ name }) => name)).toEqual(['base', 'layer', 'push', 'seal']);

      const ofRollout = all.filter(({ parentSpanId }) => parentSpanId === rollout.spanId);
      for (const name of ['stage', 'drain', 'update']) {
        expect(nodesOf(ofRollout.filter((span) => span.name === name)), name).toHaveLength(NODES);
      }
      for (const update of ofRollout.filter(({ name }) => name === 'update')) {
        expect(update).toMatchObject({ service: 'shale-daemon', failed: false });
        const [reboot] = all.filter(({ parentSpanId }) => parentSpanId === update.spanId);
        expect(reboot).toMatchObject({ name: 'reboot', service: 'shale-daemon' });
        expect(update.took).toBeGreaterThanOrEqual(reboot?.took ?? Number.POSITIVE_INFINITY);
      }
      expect(collector.refused).toEqual([]);

      const events = await client.list(Events, { labelSelector: `${labels.change}=${change}`, signal });
      const reasons = new Set(events.items.map(({ reason }) => reason));
      for (const reason of ['Cordon', 'BuildSucceeded', 'Staged', 'Rebooted', 'Completed']) {
        expect([...reasons]).toContain(reason);
      }
    } finally {
      await sandbox.stop();
      await collector.close();
      await rm(dir, { recursive: true, force: true });
    }
  },
  14 * MINUTES,
);

/** No node takes it without a reboot. */
const aKernelArgument: NewObject<MachineConfig> = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '60-quiet', labels: { [labels.role]: 'worker' } },
  spec: { kernelArguments: ['quiet'] },
};

/**
 * @param former the rollout before, which is another.
 * @returns the span of the pool's way to its image, once it and those of its nodes have come.
 */
function rolledOut(
  { spans, changes }: Collector,
  former: ReceivedSpan | undefined,
  signal: AbortSignal,
): Promise<ReceivedSpan> {
  return waitUntil({
    what: 'the rollout of the image is told',
    changes,
    look: () => {
      const rollout = spans.find(
        ({ name, spanId, attributes }) =>
          name === 'rollout' &&
          spanId !== former?.spanId &&
          attributes['shale.pool'] === 'worker' &&
          attributes['shale.image'] !== undefined,
      );
      const updates = spans.filter(
        ({ name, parentSpanId }) => name === 'update' && parentSpanId === rollout?.spanId,
      );
      return rollout !== undefined && updates.length >= NODES
        ? { met: rollout }
        : { seen: `${spans.length} spans` };
    },
    deadlineMs: 10 * MINUTES,
    signal,
  });
}

function nodesOf(spans: readonly ReceivedSpan[]): string[] {
  return [...new Set(spans.map(({ attributes }) => attributes['k8s.node.name'] ?? ''))];
}
