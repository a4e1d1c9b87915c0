import { expect, test } from 'vitest';
import type { Node } from '../../api/kubernetes.ts';
import { type KubeletBoot, kubeletOf } from './kubelet.ts';

const node = (bootID: string, heartbeat: string, status: 'True' | 'False' = 'True'): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'a' },
  status: {
    nodeInfo: { bootID },
    conditions: [
      {
        type: 'Ready',
        status,
        reason: 'r',
        message: 'm',
        lastHeartbeatTime: heartbeat,
        lastTransitionTime: heartbeat,
      },
    ],
  },
});
const at = '2026-01-01T00:00:10Z';
const full: KubeletBoot = { bootID: 'k', softBootSince: undefined };
const soft: KubeletBoot = { bootID: 'k+1', softBootSince: Date.parse(at) + 300 };

test.each<[string, Node | undefined, KubeletBoot, string]>([
  ['no node', undefined, full, 'unwatched'],
  ['of this boot', node('k', '2026-01-01T00:00:00Z'), full, 'ready'],
  ['of the boot before', node('j', '2026-01-01T00:00:20Z'), full, 'notReady'],
  ['of this boot, not Ready', node('k', at, 'False'), full, 'notReady'],
  ['of this kernel, after its soft reboot', node('k', '2026-01-01T00:00:11Z'), soft, 'ready'],
  ['of this kernel, before its soft reboot', node('k', '2026-01-01T00:00:09Z'), soft, 'notReady'],
  ['of this kernel, in the second of its soft reboot', node('k', at), soft, 'notReady'],
  ['of another kernel', node('j', '2026-01-01T00:00:11Z'), soft, 'notReady'],
])('a kubelet’s report %s', (_name, reported, boot, expected) => {
  expect(kubeletOf(reported, boot).kind).toBe(expected);
});
