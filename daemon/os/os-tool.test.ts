import { describe, expect, it } from 'vitest';
import { OsCommandError } from './os-command.ts';
import { osTool, parseVersion } from './os-tool.ts';

describe('parseVersion', () => {
  it.each([
    ['bootc 1.16.0\n', '1.16.0'],
    ["rpm-ostree:\n Version: '2026.2'\n Git: 0123\n Features:\n  - rust\n", '2026.2'],
    ["libostree:\n Version: '2022.7'\n Features:\n  - libcurl\n", '2022.7'],
    ['error: unrecognized option\n', undefined],
    ['', undefined],
  ])('%j', (text, version) => {
    expect(parseVersion(text)).toBe(version);
  });
});

describe('osTool', () => {
  const { signal } = new AbortController();

  it('asks once', async () => {
    const asked: string[] = [];
    const tool = osTool(
      async (command) => {
        asked.push(command.join(' '));
        return 'bootc 1.1.0\n';
      },
      { name: 'bootc', installsPackages: false },
    );
    expect([await tool(signal), await tool(signal)]).toEqual(
      Array(2).fill({ name: 'bootc', version: '1.1.0', installsPackages: false }),
    );
    expect(asked).toEqual(['bootc --version']);
  });

  it('remembers that a tool reports no version', async () => {
    let asked = 0;
    const tool = osTool(
      async () => {
        asked += 1;
        return 'usage: ostree COMMAND';
      },
      { name: 'ostree', installsPackages: false },
    );
    await tool(signal);
    expect(await tool(signal)).toEqual({ name: 'ostree', installsPackages: false });
    expect(asked).toBe(1);
  });

  it('reports why a version is not known, and asks again', async () => {
    let isBroken = true;
    const tool = osTool(
      async (command) => {
        if (isBroken) throw new OsCommandError(command, 'took longer than 30 s', { stderr: '' });
        return "rpm-ostree:\n Version: '2026.2'\n";
      },
      { name: 'rpm-ostree', installsPackages: true },
    );
    expect(await tool(signal)).toEqual({
      name: 'rpm-ostree',
      versionUnknown: 'rpm-ostree --version: took longer than 30 s',
      installsPackages: true,
    });
    isBroken = false;
    expect(await tool(signal)).toEqual({ name: 'rpm-ostree', version: '2026.2', installsPackages: true });
  });

  it('hides no other error', async () => {
    const tool = osTool(
      async () => {
        throw new TypeError('not a function');
      },
      { name: 'bootc', installsPackages: false },
    );
    await expect(tool(signal)).rejects.toThrow('not a function');
  });
});
