/** The metrics that a daemon serves after real updates, as Prometheus would read them. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { imageLabels } from '../api/names.ts';
import { tokenConnection } from '../cluster/connection.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { CHRONY, isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { patience } from '../test/fixtures/patience.ts';
import { HOLDER, startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes } from '../test/fixtures/test-node.ts';
import { startDaemonTelemetry } from './prometheus-metrics.ts';

describe.skipIf(noDirectoryNodes !== undefined)(
  'the metrics of a daemon',
  { timeout: patience(120_000) },
  () => {
    test('tell what it did: live, by reboot, what was brought to the disk, drift, certificates, requests', async () => {
      await using node = await createTestNode();
      const telemetry = await startDaemonTelemetry(0, '127.0.0.1');
      const { metrics } = telemetry;
      await using stack = new AsyncDisposableStack();
      stack.defer(() => telemetry.close());
      const page = async () => (await fetch(`http://127.0.0.1:${telemetry.port}/metrics`)).text();
      const value = async (series: string) =>
        Number(
          (await page())
            .split('\n')
            .find((line) => line.startsWith(`${series} `))
            ?.split(' ')[1] ?? 0,
        );

      await using daemon = await startDaemon(node, {
        metrics,
        clientOf: async ({ access: { url, token, caPem } }) =>
          createApiClient(tokenConnection(url, token, caPem), {
            onRequest: (request) => metrics.requested(request),
          }),
      });
      const policyDigest = await policies(daemon);
      const standard = standardSpec(policyDigest);
      await render(daemon, 'rendered-1', 'one\n');
      await daemon.want({ ...standard('rendered-1', 'Live'), certificates: { kubeletCA: 'sha256:none' } });
      await daemon.until('a config taken live', isAt('rendered-1'));
      expect(await value('shale_daemon_state{state="updated"}')).toBe(1);
      expect(await value('shale_daemon_update_seconds_count{way="live",result="Succeeded"}')).toBe(1);
      for (const part of ['content', 'Restart']) {
        expect(await value(`shale_daemon_live_apply_seconds_count{part="${part}",result="done"}`)).toBe(1);
      }
      // Tried again under another config.
      expect(
        await value('shale_daemon_certificates_total{name="kubeletCA",result="failed"}'),
      ).toBeGreaterThan(0);

      const chrony = path.join(node.host.root, CHRONY);
      const before = await readFile(chrony);
      await writeFile(chrony, 'by hand\n');
      await daemon.until('the drift', ({ status }) => JSON.stringify(status).includes('ConfigDrift'));
      expect(await value('shale_daemon_problem{reason="ConfigDrift"}')).toBe(1);
      expect(await value('shale_daemon_drifts_total')).toBe(1);
      await writeFile(chrony, before);
      await daemon.until('its end', isAt('rendered-1'));

      await daemon.want(standard('rendered-none', 'Live'));
      await daemon.until('why it can not be prepared', ({ status }) =>
        JSON.stringify(status).includes('PrepareFailed'),
      );
      expect(await value('shale_daemon_problem{reason="PrepareFailed"}')).toBe(1);
      expect(await value('shale_daemon_step_seconds_count{step="prepare",result="failed"}')).toBeGreaterThan(
        0,
      );

      const image = node.addImage([layerFile(CHRONY, 'two\n')], {
        [imageLabels.renderedConfig]: 'rendered-2',
        [imageLabels.baseImage]: node.stock,
      });
      const target = { config: 'rendered-2', image };
      await daemon.want({
        configVersion: { desired: 'rendered-2' },
        configImage: { desiredImage: image },
        imageSigningKeys: 'Disabled',
        policyDigest,
        grant: { level: 'Disrupt', ...target, leaseHolder: HOLDER },
      });
      await daemon.until('an image taken by a reboot', isAt('rendered-2'));
      expect(await value('shale_daemon_update_seconds_count{way="reboot",result="Succeeded"}')).toBe(1);
      expect(await value('shale_daemon_reboot_seconds_count')).toBe(1);
      expect(await value('shale_daemon_staged_bytes')).toBe(await value('shale_daemon_staging_size_bytes'));
      expect(await value('shale_daemon_staging_size_bytes')).toBeGreaterThan(0);
      expect(await value('shale_daemon_backend{backend="ostree"}')).toBe(1);

      const requests = (await page()).split('\n').filter((line) => line.includes('api_requests_total{'));
      expect(requests).toContainEqual(
        expect.stringContaining('verb="update",resource="machineconfignodes/status",code="200"'),
      );
      expect(requests.join('\n')).not.toMatch(/node-0|rendered-|\/api/);
    });
  },
);
