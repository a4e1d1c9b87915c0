import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { configOf } from '../../../test/fixtures/configs.ts';
import { patience } from '../../../test/fixtures/patience.ts';
import { written } from '../../../test/fixtures/standard-content.ts';
import { DriftWatch, type WatchedNames, watchedNames } from './drift-watch.ts';

let root: string;
const at = (name: string) => path.join(root, name);
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-watch-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(at('etc/app'), { recursive: true });
});

describe('names that are watched', () => {
  /** A watch, and how often it told of changes. */
  function watching(names: WatchedNames) {
    let told = 0;
    const watch = new DriftWatch(
      () => {
        told += 1;
      },
      pino({ level: 'silent' }),
    );
    onTestFinished(() => watch.stop());
    watch.watch(names);
    return { watch, told: () => told };
  }
  const until = (check: () => void) => vi.waitFor(check, { timeout: patience(10_000), interval: 5 });

  test('are told of once for several changes, and others are not', async () => {
    const { told } = watching(new Map([[at('etc'), new Set(['file'])]]));
    await writeFile(at('etc/other'), '');
    await writeFile(at('etc/file'), '1');
    await writeFile(at('etc/file.new'), '2');
    await rename(at('etc/file.new'), at('etc/file'));
    await until(() => expect(told()).toBe(1));
  });

  test('are told of where their directory goes', async () => {
    const { told } = watching(new Map([[at('etc/app'), new Set(['file'])]]));
    await rename(at('etc/app'), at('etc/gone'));
    await until(() => expect(told()).toBeGreaterThan(0));
  });

  test('are not told of once they are watched no more, nor what was about to be', async () => {
    const { watch, told } = watching(new Map([[at('etc'), new Set(['file', 'last'])]]));
    await writeFile(at('etc/file'), '1');
    watch.stop();
    const { told: ofOther } = watching(new Map([[at('etc'), new Set(['last'])]]));
    await writeFile(at('etc/last'), '1');
    await until(() => expect(ofOther()).toBe(1));
    expect(told()).toBe(0);
  });

  test('of a directory that is not there are found by looking alone', async () => {
    const { told, watch } = watching(
      new Map([
        [at('none'), new Set(['file'])],
        [at('etc'), new Set(['file'])],
      ]),
    );
    await writeFile(at('etc/file'), '1');
    await until(() => expect(told()).toBe(1));
    watch.watch(new Map());
  });
});

test('a path is watched in its directory, or where the first that is missing above it would be', async () => {
  const config = configOf({
    '/etc/app/file': '',
    '/etc/app/other': '',
    '/etc/none/deep/file': '',
    '/var/x': '',
  });
  expect(await watchedNames({ root }, written(config))).toEqual(
    new Map([
      [at('etc/app'), new Set(['file', 'other'])],
      [at('etc'), new Set(['none'])],
      [at('/'), new Set(['var'])],
    ]),
  );
  const withPassword = configOf({}, { passwordHashes: new Map([['core', '*']]) });
  expect(await watchedNames({ root }, written(withPassword))).toEqual(
    new Map([[at('etc'), new Set(['shadow'])]]),
  );
  expect(await watchedNames({ root }, written(configOf({ relative: '' })))).toEqual(new Map());
});
