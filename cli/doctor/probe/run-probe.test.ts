import { expect, test } from 'vitest';
import { type Probe, type ProbePlace, probePod } from './run-probe.ts';

const TARGET = { pool: 'worker', secrets: ['push'], push: 'r.example.com/os/worker:latest' };
const podAt = (place: ProbePlace, more: Partial<Probe> = {}) =>
  probePod({
    place,
    name: 'shale-probe-1',
    namespace: 'shale-system',
    image: 'r.example.com/shale:1',
    targets: [TARGET],
    plainHttp: [],
    ...more,
  });

test('a probe of the builder has its service account, labels and node', () => {
  const { metadata, spec } = podAt({ kind: 'builder', account: 'machine-os-builder', node: 'a' });
  expect(metadata.labels).toMatchObject({ 'app.kubernetes.io/name': 'machine-os-builder' });
  expect(spec).toMatchObject({ serviceAccountName: 'machine-os-builder', nodeName: 'a' });
  expect(spec.hostNetwork).toBeUndefined();
});

test('a probe of a node uses the host network and DNS, and tolerates every taint', () => {
  const { spec } = podAt({ kind: 'node', node: 'worker-0' });
  expect(spec).toMatchObject({
    serviceAccountName: 'shale-daemon',
    nodeName: 'worker-0',
    hostNetwork: true,
    dnsPolicy: 'Default',
    tolerations: [{ operator: 'Exists' }],
  });
});

test('a probe has a deadline and no privileges, and its arguments contain names only', () => {
  const { spec } = podAt({ kind: 'node', node: 'a' }, { plainHttp: ['r.example.com'] });
  const [container] = spec.containers;
  expect(spec).toMatchObject({ restartPolicy: 'Never', activeDeadlineSeconds: 120 });
  expect(container?.securityContext).toMatchObject({ runAsNonRoot: true, capabilities: { drop: ['ALL'] } });
  expect(container?.args).toEqual([
    ...['registry-probe', '--from', 'node a', '--namespace', 'shale-system'],
    ...['--target', JSON.stringify(TARGET), '--plain-http', 'r.example.com'],
    ...['--report', '/dev/termination-log'],
  ]);
});
