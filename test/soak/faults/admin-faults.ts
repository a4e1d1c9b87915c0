import { SLOTS } from './admin.ts';
import type { FaultKind } from './fault.ts';

const edit: FaultKind = {
  weight: 5,
  draw(random, { pools }) {
    const role = random.pick(pools);
    const slot = random.pick(SLOTS);
    const removes = random.next() < 0.25;
    return { kind: 'edit', subject: role, begin: ({ admin }) => admin.edit(role, slot, removes) };
  },
};

/** A to B to C and back, faster than anything is built or rolled out. */
const hurry: FaultKind = {
  weight: 2,
  draw(random, { pools }) {
    const role = random.pick(pools);
    const slots = [random.pick(SLOTS), random.pick(SLOTS)];
    const back = random.between(1, 2);
    return {
      kind: 'edits and back',
      subject: role,
      begin: async ({ admin }) => {
        for (const slot of slots) await admin.edit(role, slot, false);
        return admin.revert(role, back);
      },
    };
  },
};

const pausePool: FaultKind = {
  weight: 1,
  draw(random, { pools }) {
    const pool = random.pick(pools);
    const lastsMs = random.between(1_000, 15_000);
    return {
      kind: 'pool paused',
      subject: pool,
      details: `for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ admin }) => {
        await admin.pause(pool, true);
        return undefined;
      },
      end: ({ admin }) => admin.pause(pool, false),
    };
  },
};

const moveNode: FaultKind = {
  weight: 1,
  draw(random) {
    // Another node of the worker pool; where it goes, it is the second one.
    const [node, role] = ['worker-2', 'infra'];
    const lastsMs = random.between(3_000, 20_000);
    return {
      kind: 'node moved',
      subject: node,
      details: `to ${role} for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ admin }) => {
        await admin.setRole(node, role, true);
        return undefined;
      },
      end: ({ admin }) => admin.setRole(node, role, false),
    };
  },
};

const cordonNode: FaultKind = {
  weight: 2,
  draw(random, { machines }) {
    const node = random.pick(machines);
    const lastsMs = random.between(2_000, 20_000);
    return {
      kind: 'admin cordons',
      subject: node,
      details: `for ${lastsMs} ms`,
      lastsMs,
      begin: ({ admin }) => admin.cordon(node),
      end: ({ admin }) => admin.uncordon(node),
    };
  },
};

const flipSwitch: FaultKind = {
  weight: 1,
  draw() {
    return {
      kind: 'switch flipped',
      subject: 'layering',
      begin: async ({ admin }) => {
        await admin.setSwitch(admin.mode === 'Standard');
        return admin.mode;
      },
    };
  },
};

const rotateKey: FaultKind = {
  weight: 1,
  draw() {
    return {
      kind: 'key rotated',
      subject: 'image-signing-key',
      begin: ({ admin }) => admin.rotateSigningKey(),
    };
  },
};

export const adminFaults: readonly FaultKind[] = [
  edit,
  hurry,
  pausePool,
  moveNode,
  cordonNode,
  flipSwitch,
  rotateKey,
];
