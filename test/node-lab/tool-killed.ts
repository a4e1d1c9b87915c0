import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { deadline } from '../fixtures/patience.ts';
import { seed } from '../fixtures/sample.ts';
import { describeLabNode } from './describe-lab-node.ts';
import type { DeathPoint } from './lab-daemon.ts';
import { type LabSystem, UPDATE_MS } from './lab-node.ts';
import { CONFIG, kernelArgument, LAB_SERVICE, RESTART, text } from './lab-updates.ts';

/** Rounds in which the daemon of each update is killed once, after one in which it is not. */
const ROUNDS = 8;
/** Boots of an update that have a daemon to kill: the one that it begins in, and the one that it ends in. */
const BOOTS = 2;

/**
 * One machine goes through rounds of four updates: into layering, a live change, a reboot for kernel arguments, out of
 * layering. Points are changes of the disk, and commands that were just started and go on alone. They are counted in
 * the first round. Each test begins where the one before ended.
 *
 * @param tool its name. @param system what it installs and updates. @param missing why it can't be had here, if it
 *   can't.
 */
export function killedDaemonOfTool(tool: string, system: () => LabSystem, missing: string | undefined): void {
  /** Of the daemons that start next. */
  let deaths: (DeathPoint | undefined)[] = [];
  const options = () => ({ system: system(), deathOf: () => deaths.shift() });
  const node = { stock: LAB_SERVICE, options, missing, limitMs: UPDATE_MS + 120_000 };
  describeLabNode(`a daemon that is killed on a machine that ${tool} keeps`, node, (machine) => {
    let counts: string;
    const points = new Map<string, number>();
    let revision = 0;
    let before = '';

    beforeAll(async () => {
      counts = await mkdtemp(path.join(tmpdir(), 'shale-points-'));
      await machine.sh('echo edited here > /etc/motd');
    });
    afterAll(async () => {
      if (counts !== undefined) await rm(counts, { recursive: true });
    });

    const kernelLine = () => machine.sh('cat /proc/cmdline');

    /** By name: brings the machine to the next config, and expects of the end what is this update's own. */
    const kinds: Readonly<Record<string, (config: string) => Promise<void>>> = {
      'into layering': async (config) => {
        await machine.updates.want(config, await machine.updates.build(config), 'Disrupt');
        const { status } = await machine.arrive(config);
        expect(status?.mode).toBe('Layered');
      },
      live: async (config) => {
        const boot = await machine.bootID();
        const more = [text('/usr/share/lab', `${config}\n`)];
        const image = await machine.updates.build(config, { config: before, actions: [RESTART] }, more);
        await machine.updates.want(config, image, 'Live');
        await machine.arrive(config);
        expect(await machine.bootID()).toBe(boot);
        expect(await machine.sh('cat /usr/share/lab')).toBe(config);
      },
      'a reboot': async (config) => {
        await machine.updates.want(
          config,
          await machine.updates.build(config, undefined, [kernelArgument(`lab.karg=${revision}`)]),
          'Disrupt',
        );
        await machine.arrive(config);
        expect(await kernelLine()).toContain(`lab.karg=${revision}`);
      },
      'out of layering': async (config) => {
        await machine.updates.render(config, `${config}\n`);
        await machine.updates.wantStandard(config);
        const { status } = await machine.arrive(config);
        expect(status).toMatchObject({ mode: 'Standard', baseImage: machine.lab.stock });
        expect(await kernelLine()).not.toContain('lab.karg');
      },
    };

    async function update(kind: string): Promise<void> {
      revision += 1;
      const config = `rendered-${revision}`;
      // From here on daemons start as the test wants it.
      await machine.lab.killDaemon();
      await kinds[kind]?.(config);
      before = config;
      expect(await machine.sh(`cat ${CONFIG} /etc/motd`)).toBe(`${config}\nedited here`);
      const { staged } = await machine.lab.node.backend.status(deadline(60_000));
      // An image that was applied live is the next boot.
      expect(staged === undefined).toBe(kind !== 'live');
    }

    for (const kind of Object.keys(kinds)) {
      it(`${kind}: goes well without a kill`, async () => {
        const files = Array.from({ length: BOOTS }, (_, boot) => path.join(counts, `${revision}-${boot}`));
        deaths = files.map((countTo) => ({ countTo }));
        await update(kind);
        for (const [boot, file] of files.entries()) {
          const count = await readFile(file, 'utf8').catch(() => '0');
          points.set(`${kind} ${boot}`, Number(count));
        }
        expect(points.get(`${kind} 0`)).toBeGreaterThan(0);
      });
    }

    for (let round = 0; round < ROUNDS; round += 1) {
      for (const kind of Object.keys(kinds)) {
        it(`${kind}: ends where it was going, killed, round ${round + 1} of ${ROUNDS}`, async () => {
          // Every other round in the boot that the update ends in, if there is one.
          const boot = (points.get(`${kind} ${round % BOOTS}`) ?? 0) > 0 ? round % BOOTS : 0;
          const count = points.get(`${kind} ${boot}`) ?? 0;
          const at = pointOf(round, count);
          deaths = [...Array.from({ length: boot }, () => undefined), { at }];
          process.stderr.write(`${kind}: killed at point ${at} of ${count} in boot ${boot}\n`);
          await update(kind);
        });
      }
    }

    it('was killed in nearly all of these rounds', () => {
      // An update has not the same number of points each time: the last ones may not come.
      expect(machine.lab.deaths).toBeGreaterThan(0.8 * ROUNDS * Object.keys(kinds).length);
    });
  });
}

/** @returns one of the points for each round, evenly spread over the rounds, others with another seed. */
function pointOf(round: number, count: number): number {
  return (seed + Math.floor((round * count) / ROUNDS)) % Math.max(1, count);
}
