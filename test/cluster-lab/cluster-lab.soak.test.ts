/**
 * A kube-apiserver, kubelets and CNI of their own on machines with systemd: what the sandbox's server only imitates.
 */
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { type ConnectProxy, startConnectProxy } from '../fixtures/connect-proxy.ts';
import { patience } from '../fixtures/patience.ts';
import { refusedRequests } from '../install/permissions.ts';
import { type ClusterLab, START_MS, startClusterLab, until } from './cluster-lab.ts';
import { givenCluster } from './given.ts';
import { POLICY_ENFORCER } from './given-programs.ts';
import { installShale, NAMESPACE, poolObjects, REGISTRY_SECRET } from './install-shale.ts';
import { CONTROL_PLANE_ADDRESS } from './lab-network.ts';
import { PAUSE_IMAGE } from './machine-image.ts';
import { ALLOWED, REFUSED, startListeners } from './network-policies.ts';
import { readRequests } from './requests.ts';
import { rollOut } from './rollouts.ts';

const given = givenCluster();
const title = 'Shale on a cluster with kubelets';
const EXAMPLES = path.join(import.meta.dirname, '../../examples');
/** Of the examples, each in the file of its name. */
const STANDARD_CONFIGS = ['20-worker-chrony', '30-worker-sysctl', '70-worker-kargs'];
const NO_BOOT = { 'worker-0': 0, 'worker-1': 0 };
const ONE_BOOT = { 'worker-0': 1, 'worker-1': 1 };
const ACCOUNTS = new Set(['shale-operator', 'machine-os-builder', 'shale-daemon']);
/** What a failure is looked into with. */
const ASKED = [
  ['get', 'nodes,pods,mcp,mcn,machineosbuilds', '--all-namespaces', '-o', 'wide'],
  ['get', 'events', '--all-namespaces', '--sort-by=.lastTimestamp'],
  ['logs', '-n', NAMESPACE, '-l', 'app.kubernetes.io/name=shale-operator', '--tail=60'],
] as const;

/** The tests are steps of one cluster's life: each begins where the one before ended. */
describe.skipIf('why' in given)(
  'why' in given ? `${title} (skipped: ${given.why})` : title,
  { timeout: patience(600_000) },
  () => {
    let lab: ClusterLab;
    let proxy: ConnectProxy;
    let outage = { from: 0, to: 0 };

    beforeAll(async () => {
      if ('why' in given) return;
      lab = await startClusterLab(given.programs);
      proxy = await startConnectProxy({ address: CONTROL_PLANE_ADDRESS });
    }, patience(START_MS));
    afterEach(async ({ task }) => {
      if (task.result?.state !== 'fail') return;
      for (const args of ASKED) {
        process.stderr.write(`--- kubectl ${args.join(' ')}\n${await lab.kubectl(args).catch(String)}\n`);
      }
    });
    afterAll(async () => {
      proxy?.[Symbol.dispose]();
      await lab?.[Symbol.asyncDispose]();
    }, patience(120_000));

    const apply = (...names: readonly string[]) =>
      lab.kubectl(['apply', ...names.flatMap((name) => ['-f', path.join(EXAMPLES, name)])]);
    const onEach = (line: string) => Promise.all(lab.machines.map(({ sh }) => sh(line)));

    it('is installed by kubectl from a private registry, and asks nothing of the nodes', async () => {
      await installShale(lab, proxy.url);
      const act = () => lab.kubectl(['apply', '-f', '-'], poolObjects(lab));
      const { boots } = await rollOut(lab, { mode: 'Standard', act });
      expect(boots).toEqual(NO_BOOT);
    });

    it('has the NetworkPolicies', async () => {
      const policies = await lab.kubectl(['get', 'networkpolicies', '--all-namespaces', '-o', 'name']);
      expect(
        policies
          .split('\n')
          .map((name) => path.basename(name))
          .sort(),
      ).toEqual([...['shale-builds', 'shale-deny-ingress', 'shale-metrics']]);
    });

    const enforced = 'why' in given || given.programs[POLICY_ENFORCER] !== undefined;
    const policies = `lets ask only whom the NetworkPolicies allow${enforced ? '' : ` (skipped: no ${POLICY_ENFORCER})`}`;
    it.skipIf(!enforced)(policies, async () => {
      await using listeners = await startListeners(lab);
      const questions = [...ALLOWED, ...REFUSED];
      expect(await listeners.answered(questions, ALLOWED)).toEqual(ALLOWED);
    });

    it('has pods of which only the daemons need more than Pod Security’s `restricted`', async () => {
      const label = 'pod-security.kubernetes.io/enforce=restricted';
      const warned = await lab.kubectlWarns([
        ...['label', 'namespace', NAMESPACE, label, '--overwrite', '--dry-run=server'],
      ]);
      expect(warned).toMatch(/shale-daemon-/);
      expect(warned).not.toMatch(/shale-operator-|machine-os-builder-/);
    });

    it('rolls out the examples in standard mode, a node after the other', async () => {
      const { boots } = await rollOut(lab, {
        mode: 'Standard',
        act: async () => {
          // Rendered twice, should it take more than the operator's two seconds, they would cost two reboots.
          const pause = (paused: boolean) =>
            lab.kubectl([
              'patch',
              'mcp',
              'worker',
              '--type=merge',
              '-p',
              JSON.stringify({ spec: { paused } }),
            ]);
          await pause(true);
          await apply('90-disruption-policy.yaml', ...STANDARD_CONFIGS.map((name) => `${name}.yaml`));
          await until('the paused pool has rendered them', async () => {
            const { spec } = await lab.client.get(MachineConfigPools, 'worker');
            const rendered = spec.configuration?.source?.map(({ name }) => name) ?? [];
            const missing = STANDARD_CONFIGS.filter((name) => !rendered.includes(name));
            return missing.length === 0 || `without ${missing.join(', ')}`;
          });
          await pause(false);
        },
      });
      expect(boots).toEqual(ONE_BOOT);
      for (const line of await onEach('cat /etc/chrony.conf')) expect(line).toContain('ntp1.example.org');
      for (const line of await onEach('cat /proc/cmdline')) expect(line).toContain('audit=1');
    });

    it('switches to images without a reboot', async () => {
      const enable = () =>
        lab.shale(
          ...['enable', '--yes', '--image-repository', `${lab.registry.host}/os/{pool}`],
          ...['--push-secret', REGISTRY_SECRET, '--pull-secret', REGISTRY_SECRET],
        );
      const { boots } = await rollOut(lab, { mode: 'Layered', act: enable, sameConfig: true });
      expect(boots).toEqual(NO_BOOT);
    });

    it('takes a change live, and nothing is evicted', async () => {
      const pods = await podNames(lab);
      const { boots } = await rollOut(lab, { mode: 'Layered', act: () => apply('tour/chrony-v2.yaml') });
      expect(boots).toEqual(NO_BOOT);
      for (const line of await onEach('cat /etc/chrony.conf')) expect(line).toContain('ntp3.example.org');
      expect(await podNames(lab)).toEqual(pods);
    });

    it('waits for an admin who drains a node, and for the cluster autoscaler', async () => {
      const boots = () => lab.machines.map(({ boots: count }) => count);
      const status = async (text: string) =>
        until(`shale status says: ${text}`, async () => {
          const shown = await lab.shale('status');
          return shown.includes(text) || shown;
        });
      const before = boots();
      const { boots: after } = await rollOut(lab, {
        mode: 'Layered',
        act: async () => {
          await lab.kubectl([
            'drain',
            'worker-1',
            '--ignore-daemonsets',
            '--delete-emptydir-data',
            '--timeout=300s',
          ]);
          await apply('tour/karg.yaml');
          await status('cordoned, and not by Shale');
          expect(boots()).toEqual(before);
          // Pods of worker-0 can only move to worker-1, so its drain waits for the end of the taint.
          await lab.kubectl(['taint', 'node', 'worker-1', 'ToBeDeletedByClusterAutoscaler=1:NoSchedule']);
          await lab.kubectl(['uncordon', 'worker-1']);
          await status('the cluster autoscaler is about to delete the node');
          await until('worker-0 is cordoned in its place', async () => {
            const { spec } = await lab.client.get(Nodes, 'worker-0');
            return spec?.unschedulable === true;
          });
          await lab.kubectl(['taint', 'node', 'worker-1', 'ToBeDeletedByClusterAutoscaler-']);
          await until('a machine has rebooted', async () => `${boots()}` !== `${before}`);
          expect(boots()[1]).toBe(before[1]);
          // In mid-reboot.
          const from = Date.now();
          await lab.controlPlane.apiServer.kill();
          await lab.controlPlane.apiServer.start();
          outage = { from, to: Date.now() };
        },
      });
      expect(after).toEqual(ONE_BOOT);
      for (const line of await onEach('cat /proc/cmdline')) {
        expect(line).toContain('transparent_hugepage=madvise');
      }
    });

    it('goes on with the other operator when the one that leads is gone in mid-rollout', async () => {
      const leads = async () =>
        (await lab.client.find(Leases, OPERATOR_DEPLOYMENT, { namespace: NAMESPACE }))?.spec?.holderIdentity;
      const { boots } = await rollOut(lab, {
        mode: 'Layered',
        act: async () => {
          await lab.kubectl(['delete', 'machineconfig', '70-worker-kargs']);
          await until('a node is cordoned', async () => {
            const { items } = await lab.client.list(Nodes);
            return items.some(({ spec }) => spec?.unschedulable === true);
          });
          const former = await leads();
          expect(former).toContain(OPERATOR_DEPLOYMENT);
          await lab.kubectl(['delete', 'pod', '-n', NAMESPACE, `${former}`, '--grace-period=0', '--force']);
          await until('another operator leads', async () => {
            const holder = await leads();
            return (Boolean(holder) && holder !== former) || `${holder} leads`;
          });
        },
      });
      expect(boots).toEqual(ONE_BOOT);
      for (const line of await onEach('cat /proc/cmdline')) expect(line).not.toContain('audit=1');
    });

    it('warns of Kured', async () => {
      await lab.kubectl(['apply', '-f', '-'], KURED);
      // A daemon reports that its node is updated before the kubelet has probed it.
      await lab.kubectl(['rollout', 'status', '-n', NAMESPACE, 'daemonset/shale-daemon', '--timeout=60s']);
      expect(await lab.shale('doctor')).toContain(
        'Kured (DaemonSet kube-system/kured) drains and reboots nodes',
      );
    });

    it('returns to the stock image', async () => {
      const { boots } = await rollOut(lab, {
        mode: 'Standard',
        act: () => lab.shale('disable', '--yes'),
        sameConfig: true,
      });
      expect(boots).toEqual(ONE_BOOT);
      await until('the builder is gone', async () => {
        const pods = await podNames(lab);
        return !pods.includes('machine-os-builder') || pods;
      });
    });

    it('reached the registry through the egress proxy alone', () => {
      expect(new Set(proxy.asked)).toEqual(new Set([lab.registry.host]));
      expect(proxy.clients.size).toBeGreaterThan(2);
    });

    it('was refused nothing', async () => {
      const requests = await readRequests(lab.controlPlane.auditLog, outage);
      expect(requests.filter(({ user }) => user.endsWith(':shale-daemon')).length).toBeGreaterThan(0);
      expect(refusedRequests(requests, ACCOUNTS)).toEqual([]);
    });
  },
);

/** As Kured's own manifest names it, with its lock (kubereboot/kured, kured-ds.yaml). */
const KURED = JSON.stringify({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: {
    name: 'kured',
    namespace: 'kube-system',
    annotations: {
      'weave.works/kured-node-lock': '{"nodeID":"worker-0","metadata":{"unschedulable":false}}',
    },
  },
  spec: {
    selector: { matchLabels: { name: 'kured' } },
    template: {
      metadata: { labels: { name: 'kured' } },
      spec: { containers: [{ name: 'kured', image: PAUSE_IMAGE }] },
    },
  },
});

function podNames(lab: ClusterLab): Promise<string> {
  return lab.kubectl(['get', 'pods', '--all-namespaces', '-o', 'name', '--sort-by=.metadata.name']);
}
