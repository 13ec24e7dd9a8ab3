"""M2CQA: conversion of rows, and prompt functions."""
