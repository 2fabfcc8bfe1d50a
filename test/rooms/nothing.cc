// A program that does nothing: what it is linked with is what is looked at (engine/local.mk).
int main() {}
