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

  it('tells of a tool that does not say', async () => {
    const tool = osTool(
      async (command) => {
        throw new OsCommandError(command, 'exit code 1', { stderr: '' });
      },
      { name: 'rpm-ostree', installsPackages: true },
    );
    expect(await tool(signal)).toEqual({ name: 'rpm-ostree', installsPackages: true });
  });
});
