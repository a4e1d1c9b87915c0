import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { conditionIsTrue } from '../../cluster/conditions.ts';
import { createTestNode, noDirectoryNodes, type TestNode } from './testing.ts';
import { CHRONY, isAt, policies, render, standardSpec } from './testing-configs.ts';
import { startDaemon } from './testing-daemon.ts';

const read = (node: TestNode, file: string) => readFile(path.join(node.host.root, file), 'utf8');
const YEAR_MS = 365 * 24 * 3_600_000;

describe.skipIf(noDirectoryNodes !== undefined)('a host', { timeout: 120_000 }, () => {
  afterEach(() => void vi.useRealTimers());

  test('with a read-only /etc stays as it was, says so, and is updated as soon as it can be written to', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const standard = standardSpec(await policies(daemon));
    for (const [name, text] of Object.entries({ 'rendered-1': 'one\n', 'rendered-2': 'two\n' })) {
      await render(daemon, name, text);
    }
    await daemon.want(standard('rendered-1', 'Disrupt'));
    await daemon.until('the first config', isAt('rendered-1'));
    const etc = path.join(node.host.root, 'etc');
    await execa('mount', ['--bind', etc, etc]);
    try {
      await execa('mount', ['-o', 'remount,ro,bind', etc]);
      await daemon.want(standard('rendered-2', 'Live'));
      const { status } = await daemon.until('why it can not be updated', ({ status }) =>
        conditionIsTrue(status?.conditions, 'NodeDegraded'),
      );
      expect(JSON.stringify(status?.conditions)).toContain('EROFS');
      expect(status?.configVersion?.current).toBe('rendered-1');
      expect(await read(node, CHRONY)).toBe('one\n');
    } finally {
      await execa('umount', [etc]);
    }
    await daemon.until('the second config', isAt('rendered-2'));
    expect(await read(node, CHRONY)).toBe('two\n');
  });

  test('whose clock jumps by years, there and back, goes on with its updates', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node, { healthLimits: { checksMs: 30_000, kubeletMs: 1_000 } });
    const standard = standardSpec(await policies(daemon));
    const now = Date.now();
    vi.useFakeTimers({ toFake: ['Date'] });
    const bootID = await node.host.bootID();
    for (const [index, jump] of [0, 20 * YEAR_MS, -30 * YEAR_MS, 0].entries()) {
      vi.setSystemTime(now + jump);
      const name = `rendered-${index}`;
      await render(daemon, name, `${name}\n`, index === 2 ? ['quiet'] : []);
      await daemon.want(standard(name, 'Disrupt'));
      // In the middle of the update, as a time server does it to a host whose battery is empty.
      vi.setSystemTime(now - jump);
      const { status } = await daemon.until(name, isAt(name));
      expect(status?.lastUpdate?.result).toBe('Succeeded');
      expect(await read(node, CHRONY)).toBe(`${name}\n`);
    }
    expect(await node.host.bootID()).not.toBe(bootID);
  });
});
