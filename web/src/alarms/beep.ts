// A short sound of two tones. Browsers play it only after somebody has clicked in the page.

let audio: AudioContext | undefined;

export function beep(): void {
  audio ??= new AudioContext();
  const { currentTime, destination } = audio;
  void audio.resume();
  for (const [n, frequency] of [880, 660].entries()) {
    const tone = audio.createOscillator();
    const loudness = audio.createGain();
    const at = currentTime + n * 0.18;
    tone.frequency.value = frequency;
    loudness.gain.setValueAtTime(0.15, at);
    loudness.gain.exponentialRampToValueAtTime(0.001, at + 0.17);
    tone.connect(loudness).connect(destination);
    tone.start(at);
    tone.stop(at + 0.18);
  }
}
