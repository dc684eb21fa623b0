import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Answer, Gpu, View } from '../protocol.js';
import {
  bannerText,
  duration,
  gpuLines,
  gpuUse,
  type Seen,
  secondsLeft,
  statusText,
  tone,
  warningKey,
} from '../texts.js';

const AT = 1_000_000;

function answer(changes: Partial<Answer> = {}): Answer {
  return {
    state: 'in-use',
    text: 'A kernel is computing.',
    observeOnly: false,
    limit: null,
    secondsLeft: null,
    stage: 0,
    lost: [],
    buttons: [],
    evidence: [],
    ...changes,
  };
}

function seen(answer: Answer | null, changes: Partial<View> = {}): Seen {
  const view = {
    answer,
    answerAgeSeconds: 0,
    problem: null,
    gpus: [],
    save: null,
    handoff: false,
    ...changes,
  };
  return { view, at: AT };
}

function gpu(use: number | null, memoryBytes: number | null = null): Gpu {
  return { uuid: 'GPU-1', use, memoryBytes };
}

for (const [seconds, text] of [
  [0, '0 s'],
  [59.6, '1 min'],
  [90, '1 min 30 s'],
  [299, '4 min 59 s'],
  [300, '5 min'],
  [3_570, '1 h'],
  [5_400, '1 h 30 min'],
  [86_340, '23 h 59 min'],
  [90_000, '1 d 1 h'],
] as const) {
  test(`${seconds} seconds are ${text}`, () => assert.equal(duration(seconds), text));
}

test('the countdown goes on from the age of the answer, and not below nothing', () => {
  const warned = seen(answer({ state: 'warned', secondsLeft: 600 }), { answerAgeSeconds: 20 });
  assert.equal(secondsLeft(warned, AT + 30_000), 550);
  assert.equal(secondsLeft(warned, AT + 6_000_000), 0);
  assert.equal(secondsLeft(seen(answer()), AT), null);
  assert.equal(secondsLeft(seen(null), AT), null);
});

test('there is no banner before a warning', () => {
  for (const state of ['in-use', 'idle', 'unknown', 'kept', 'unlimited'] as const) {
    assert.equal(bannerText(seen(answer({ state, secondsLeft: 60 })), AT), null);
  }
});

test('a warning says when and why, and turns urgent', () => {
  const warned = seen(
    answer({ state: 'warned', text: 'Nothing has run for 1 h.', secondsLeft: 600, stage: 1 }),
  );
  assert.equal(bannerText(warned, AT), 'This server stops in 10 min. Nothing has run for 1 h.');
  assert.equal(tone(warned, AT), 'warn');
  assert.equal(tone(warned, AT + 500_000), 'urgent');
});

test('saving and stopping are said', () => {
  assert.match(bannerText(seen(answer({ state: 'saving' })), AT) ?? '', /^Saving your documents/);
  assert.match(bannerText(seen(answer({ state: 'stopping' })), AT) ?? '', /^This server is stopping/);
});

test('a culler that only observes alarms nobody', () => {
  const warned = seen(answer({ state: 'warned', secondsLeft: 60, stage: 1, observeOnly: true }));
  assert.equal(bannerText(warned, AT), null);
  assert.equal(statusText(warned, AT), 'Stops in 1 min (not enforced)');
});

test('a closed banner comes back with the next warning', () => {
  const first = answer({ state: 'warned', limit: 'idle', stage: 1 });
  assert.equal(warningKey(first), warningKey({ ...first, secondsLeft: 5 }));
  assert.notEqual(warningKey(first), warningKey({ ...first, stage: 2 }));
  assert.notEqual(warningKey(first), warningKey({ ...first, limit: 'session' }));
});

test('the status bar says how long and how much of the GPU', () => {
  const gpus = [gpu(0.342)];
  assert.equal(statusText(seen(answer(), { gpus }), AT), 'In use · GPU 34 %');
  assert.equal(statusText(seen(answer({ secondsLeft: 5_400 }), { gpus }), AT), '1 h 30 min left · GPU 34 %');
  assert.equal(statusText(seen(answer({ state: 'idle', secondsLeft: 720 })), AT), 'Stops in 12 min');
  assert.equal(statusText(seen(answer({ state: 'kept', secondsLeft: 720 })), AT), 'Kept for 12 min');
  assert.equal(statusText(seen(null, { gpus }), AT), 'GPU 34 %');
  assert.equal(statusText(seen(answer({ state: 'unlimited' })), AT), '');
});

test('what is not measured is not called nothing', () => {
  assert.equal(gpuUse([]), '');
  assert.equal(gpuUse([gpu(null)]), 'GPU: not measured');
  assert.equal(gpuUse([gpu(0)]), 'GPU 0 %');
  assert.equal(gpuUse([gpu(0.004)]), 'GPU < 1 %');
  assert.equal(gpuUse([gpu(1), gpu(0)]), 'GPUs 100 %, 0 %');
});

test('held memory is told beside use', () => {
  assert.deepEqual(gpuLines([gpu(0.5, 2 ** 31), gpu(null)]), [
    'GPU 1: 50 % used, 2.0 GiB held',
    'GPU 2: use not measured',
  ]);
});
