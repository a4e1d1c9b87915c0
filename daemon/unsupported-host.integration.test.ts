/** A daemon on a root that no backend knows: reported, and nothing written. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodePaths } from '../api/names.ts';
import { patience } from '../test/fixtures/patience.ts';
import { startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, noDirectoryNodes } from '../test/fixtures/test-node.ts';
import { DetectedBackend, detectBackend } from './os/detect-backend.ts';
import { osCommandRunner } from './os/os-command.ts';

describe.skipIf(noDirectoryNodes !== undefined)('a daemon on a host that is not image-based', () => {
  test('says so in the node’s status and touches nothing', { timeout: patience(60_000) }, async () => {
    await using node = await createTestNode();
    const host = { root: node.host.root, run: osCommandRunner() };
    const backend = new DetectedBackend(async (_needs, signal) => {
      await detectBackend(host, signal);
      return node.backend;
    });
    await using daemon = await startDaemon(node, { ports: { ...node, backend } });
    await daemon.want({ configVersion: { desired: 'rendered-1' } });
    const { status } = await daemon.until('the reason', ({ status: said }) =>
      (said?.conditions ?? []).some(({ reason }) => reason === 'UnsupportedHost'),
    );
    const why = expect.stringContaining('not booted by ostree');
    const conditions = Object.fromEntries((status?.conditions ?? []).map((each) => [each.type, each]));
    expect(conditions).toMatchObject({
      NodeDegraded: { status: 'True', message: why },
      Ready: { status: 'False', message: why },
      Reconciling: { status: 'False' },
      Stalled: { status: 'True', message: why },
    });
    expect(existsSync(path.join(node.host.root, nodePaths.state))).toBe(false);
  });
});
