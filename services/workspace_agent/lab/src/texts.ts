/** How the session is put into words. No widget and no clock in here: `now` is in milliseconds of `Date.now()`. */

import type { Answer, Gpu, View } from './protocol.js';

/** A view and when this page got it. */
export interface Seen {
  readonly view: View;
  readonly at: number;
}

export type Tone = 'quiet' | 'warn' | 'urgent';

/** Less time than this is urgent, in seconds. */
const URGENT = 150;

/** Seconds until the deadline, or null where none is set. */
export function secondsLeft(seen: Seen, now: number): number | null {
  const { answer, answerAgeSeconds } = seen.view;
  if (answer === null || answer.secondsLeft === null) {
    return null;
  }
  return Math.max(answer.secondsLeft - (answerAgeSeconds ?? 0) - (now - seen.at) / 1000, 0);
}

/** A length of time as people say it: two units at most, seconds only in the last five minutes. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) {
    return `${whole} s`;
  }
  if (whole < 300) {
    return whole % 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole / 60} min`;
  }
  const minutes = Math.round(whole / 60);
  if (minutes < 60) {
    return `${minutes} min`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 24) {
    return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  }
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

/** How much the GPUs are used, in a few words; empty where there is none. */
export function gpuUse(gpus: readonly Gpu[]): string {
  const known = gpus.map(gpu => gpu.use).filter(use => use !== null);
  if (!gpus.length) {
    return '';
  }
  if (!known.length) {
    return 'GPU: not measured';
  }
  return gpus.length > 1
    ? `GPUs ${known.map(use => percent(use)).join(', ')}`
    : `GPU ${percent(Math.max(...known))}`;
}

/** One line per GPU, with its memory. */
export function gpuLines(gpus: readonly Gpu[]): string[] {
  return gpus.map((gpu, index) => {
    const name = gpus.length > 1 ? `GPU ${index + 1}` : 'GPU';
    const use = gpu.use === null ? 'use not measured' : `${percent(gpu.use)} used`;
    const memory = gpu.memoryBytes === null ? '' : `, ${gigabytes(gpu.memoryBytes)} held`;
    return `${name}: ${use}${memory}`;
  });
}

/** What the status bar shows: short, and never alarming before a warning is due. */
export function statusText(seen: Seen, now: number): string {
  const { answer, gpus } = seen.view;
  const parts = [answer ? standing(answer, secondsLeft(seen, now)) : '', gpuUse(gpus)];
  return parts.filter(part => part).join(' · ');
}

/** How urgent it is. */
export function tone(seen: Seen, now: number): Tone {
  const { answer } = seen.view;
  if (!answer || answer.observeOnly || !bannerStates.has(answer.state)) {
    return 'quiet';
  }
  const left = secondsLeft(seen, now);
  return answer.state !== 'warned' || (left !== null && left < URGENT) ? 'urgent' : 'warn';
}

/** What the banner says, or null while there is no need for one. */
export function bannerText(seen: Seen, now: number): string | null {
  const { answer } = seen.view;
  if (!answer || tone(seen, now) === 'quiet') {
    return null;
  }
  const left = secondsLeft(seen, now);
  const when =
    answer.state === 'warned' && left !== null
      ? `This server stops in ${duration(left)}. `
      : answer.state === 'saving'
        ? 'Saving your documents, then this server stops. '
        : answer.state === 'stopping'
          ? 'This server is stopping. '
          : '';
  return `${when}${answer.text}`;
}

/** Names the warning that a banner is for: closing it lasts until the next one. */
export function warningKey(answer: Answer): string {
  return `${answer.state}/${answer.limit ?? ''}/${answer.stage}`;
}

const bannerStates = new Set(['warned', 'saving', 'stopping']);

function standing(answer: Answer, left: number | null): string {
  if (answer.state === 'saving') {
    return 'Saving';
  }
  if (answer.state === 'stopping') {
    return 'Stopping';
  }
  if (left !== null && answer.state !== 'in-use') {
    return `${answer.state === 'kept' ? 'Kept' : 'Stops in'} ${answer.state === 'kept' ? 'for ' : ''}${duration(left)}${answer.observeOnly ? ' (not enforced)' : ''}`;
  }
  if (left !== null) {
    return `${duration(left)} left`;
  }
  return {
    'in-use': 'In use',
    idle: 'Idle',
    unknown: 'Not measured',
    kept: 'Kept',
    warned: 'Idle',
    unlimited: '',
  }[answer.state];
}

function percent(share: number): string {
  return share > 0 && share < 0.01 ? '< 1 %' : `${Math.round(share * 100)} %`;
}

function gigabytes(bytes: number): string {
  const value = bytes / 2 ** 30;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} GiB`;
}
